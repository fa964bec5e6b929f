"""What an operation asks of the world, and what it gets: the seam between core and shells.

An operation is a generator that yields steps and is sent answers; it neither sends nor sleeps.
Whoever drives it does, in plain code or in an event loop. What fails is thrown into it.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Generic, TypeAlias, TypeVar

from asyncjob.errors import AsyncJobError
from asyncjob.json_types import Json, JsonObject, as_object

T = TypeVar("T")

JSON_TYPE: Final = "application/json"
MERGE_PATCH_CONTENT_TYPE: Final = "application/merge-patch+json"

INITIAL_DELAY_SECONDS: Final = 0.2
MAX_DELAY_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `params` may name one parameter several times.

    `timeout_seconds`: so many seconds later no answer is waited for; None leaves that to who sends
    it. `max_bytes`: an answer that becomes larger is not read to its end, but raises
    PageTooLargeError, where who sends it can tell.
    """

    method: str
    path: str
    params: tuple[tuple[str, str], ...] = ()
    body: Json = None
    content_type: str = JSON_TYPE
    accept: str = JSON_TYPE
    headers: tuple[tuple[str, str], ...] = ()
    timeout_seconds: float | None = None
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for about so many seconds; with 0, only tell the time."""

    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Listen:
    """Open a stream of events, in the place of one that is open.

    `max_silence`: it may be so quiet.
    """

    call: Call
    max_silence: float


@dataclass(frozen=True, slots=True)
class Next:
    """Wait for the stream's next event; the answer has none once it has ended or is too quiet."""


Step: TypeAlias = Call | Pause | Listen | Next


@dataclass(frozen=True, slots=True)
class Fetch:
    """Ask a store, which blocks: an event loop goes on meanwhile. The answer's body is the value.

    It needs nothing of the world, so that whoever drives the operation sees to it.
    """

    work: Callable[[], Json]


@dataclass(frozen=True, slots=True)
class Emit(Generic[T]):
    """Hand a value to whoever iterates."""

    value: T


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a step; `at` is when, in seconds of a clock that never goes back.

    `size` is how many bytes were read, 0 where nobody counts them.
    """

    at: float
    body: Json = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    size: int = 0

    @property
    def object(self) -> JsonObject:
        """Return the body where it is an object, else an empty one."""
        return as_object(self.body)


Steps: TypeAlias = Generator[Step | Fetch, Answer, T]
"""An operation that ends with a value."""

Emissions: TypeAlias = Generator[Step | Fetch | Emit[T], Answer, None]
"""An operation that hands out values one by one."""


@dataclass(slots=True)
class RetryBudget:
    """How long failures that may pass are waited out; begins with the first of them."""

    seconds: float
    _since: float | None = None
    _pause: float = INITIAL_DELAY_SECONDS

    def wait_or_raise(self, error: AsyncJobError) -> Steps[None]:
        """Wait before another try; raises the error where another try is of no use, or too late."""
        if not error.retryable:
            raise error
        now = (yield Pause()).at
        self._since = now if self._since is None else self._since
        if now + self._pause - self._since > self.seconds:
            raise error
        yield Pause(max(self._pause, getattr(error, "retry_after", None) or 0.0))
        self._pause = min(self._pause * 2, MAX_DELAY_SECONDS)


def with_timeout(steps: Steps[T], seconds: float | None) -> Steps[T]:
    """Run an operation of whose requests each is to be answered within so many seconds."""
    resume = partial(next, steps)
    while True:
        try:
            step = resume()
        except StopIteration as stop:
            value: T = stop.value
            return value
        if isinstance(step, Call) and seconds is not None:
            step = replace(step, timeout_seconds=seconds)
        try:
            resume = partial(steps.send, (yield step))
        except AsyncJobError as error:
            resume = partial(steps.throw, error)


def call_with_retries(call: Call, seconds: float) -> Steps[Answer]:
    """Send a request that may be repeated until it is answered; gives up after `seconds`."""
    patience = RetryBudget(seconds)
    while True:
        try:
            return (yield call)
        except AsyncJobError as error:
            yield from patience.wait_or_raise(error)
