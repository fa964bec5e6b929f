"""Whether an attempt may park: not while the body of a step runs, nor before all waits are known.

A handler may wait for several things at once and go on with whichever is over first. So no wait
parks the job before each wait that has begun, also in the same turn of the handler's loop, has been
looked at; and once one is over, or a step is done, the handler has a moment to react: it gives up
the other waits, or begins the next step. A wait that the handler cancels is given up: it neither
parks the job nor wakes it.
"""

import asyncio
import concurrent.futures
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from asyncjob.app.errors import AttemptOverError, KeptResultError, StepError
from asyncjob.app.waiting_calls import Forgotten

LOOK_SECONDS: Final = 2.0
"""How often a wait looks again while something holds up the park."""

REACT_SECONDS: Final = 0.5
"""How long a handler has, once a wait is over or a step done, before another wait parks the job. It
takes a few turns of a loop; this is long enough for a busy one, and short beside a park."""


class Parked(BaseException):
    """Ends the handler as its job is parked. Let it through: the handler runs again later."""


@dataclass(eq=False, slots=True)
class _Body:
    """The body of a step, which runs or has run; `outer` is the one that it was begun in."""

    gate: "ParkGate"
    key: str
    outer: "_Body | None"
    runs: bool = True


_BODY: Final[ContextVar[_Body | None]] = ContextVar("body_of_a_step", default=None)
"""The body that runs here: in its task or thread, and in the tasks that it has begun."""


class WaitAnswer(Protocol):
    """What has become of a wait, as the worker says."""

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to wait for; if not, the attempt is to park."""

    @property
    def left(self) -> float | None:
        """Seconds until it is over by time; None if it never is."""


AnswerT = TypeVar("AnswerT", bound=WaitAnswer)


class ParkGate:
    """Lets an attempt park once nothing holds that up; used from any thread.

    The end of a step or a wait is counted for the task or thread that it ends in: who goes on after
    it has reacted by what it does next, and only waits of others give the handler its moment.
    `forgotten` has the waits that the handler has dropped.
    """

    def __init__(self, forgotten: Forgotten | None = None) -> None:
        self._forgotten = forgotten or Forgotten()
        self._failed: KeptResultError | None = None
        self._lock = threading.Lock()
        self._bodies = 0
        self._looks = 0
        self._idle: list[concurrent.futures.Future[None]] = []
        self._answered: list[concurrent.futures.Future[None]] = []
        self._waits = Counter[str]()
        self._ends = 0
        self._ends_of: WeakKeyDictionary[object, int] = WeakKeyDictionary()
        self.parked = False
        self.parked_for = ""
        """What the wait that has parked the attempt is for, in words."""

    def fail(self, error: KeptResultError) -> KeptResultError:
        """Have nothing more begun in this attempt, and return the error to raise."""
        self._failed = error
        return error

    def check(self) -> None:
        """Raise what lets the attempt begin nothing more: a misfit, or a wait that was dropped."""
        if self._failed is not None:
            raise KeptResultError(str(self._failed))
        if not self.parked:  # whatever else: the handler is left by Parked
            self._forgotten.check()

    def check_wait(self, what: str) -> None:
        """Raise what lets it begin no wait: StepError within the body of a step as well."""
        self.check()
        body = _BODY.get()
        while body is not None:
            if body.runs and body.gate is self:
                raise StepError(
                    f"{what}: a wait inside the body of step {body.key!r}, which holds its slot: "
                    "take the wait out of the step"
                )
            body = body.outer

    @contextmanager
    def body(self, key: str) -> Iterator[None]:
        """Run the body of a step meanwhile; raises Parked if the attempt parks already."""
        self.check()
        with self._lock:
            if self.parked:
                raise Parked(f"step {key!r} is taken once the job runs again")
            self._bodies += 1
        body = _Body(self, key, _BODY.get())
        _BODY.set(body)
        try:
            yield
        finally:
            body.runs = False
            if _BODY.get() is body:  # not where a body that was left to itself is cleaned up
                _BODY.set(body.outer)
            self._end_body()

    def _end_body(self) -> None:
        with self._lock:
            self._count_end()
            self._bodies -= 1
            idle, self._idle = ([], self._idle) if self._bodies else (self._idle, [])
        _fill(idle)

    def note_end(self) -> None:
        """Record that a step or a wait is over, in the task or thread that goes on then."""
        with self._lock:
            self._count_end()

    def _count_end(self) -> None:
        who = _who_asks()
        self._ends += 1
        self._ends_of[who] = self._ends_of.get(who, 0) + 1

    def ends_of_others(self) -> int:
        """Return how many steps and waits have ended in other tasks and threads than this."""
        with self._lock:
            return self._count_others()

    def _count_others(self) -> int:
        return self._ends - self._ends_of.get(_who_asks(), 0)

    @contextmanager
    def look(self) -> Iterator[None]:
        """Look at a wait meanwhile: it may be over, so that no other parks the attempt."""
        with self._lock:
            self._looks += 1
        try:
            yield
        finally:
            with self._lock:
                self._looks -= 1
                answered, self._answered = (
                    ([], self._answered) if self._looks else (self._answered, [])
                )
            _fill(answered)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Wait with the slot held: nothing parks meanwhile, and its end may be reacted to."""
        with self.look():
            try:
                yield
            finally:
                self.note_end()

    def unanswered(self) -> "concurrent.futures.Future[None] | None":
        """Return what is done once all waits have been looked at; None if they have been."""
        with self._lock:
            return _added(self._answered) if self._looks else None

    def park(self, seen: int, what: str = "") -> "concurrent.futures.Future[None] | None":
        """Park the attempt, or return what is done once it may be tried again.

        It is not parked while a body runs or a wait is looked at, nor if more has ended in others
        than this had `seen`.
        """
        with self._lock:
            if self._bodies:
                return _added(self._idle)
            if self._looks or self._count_others() != seen:
                now: concurrent.futures.Future[None] = concurrent.futures.Future()
                now.set_result(None)
                return now
            self.parked, self.parked_for = True, what
            return None

    def begin_wait(self, key: str) -> None:
        """Count a wait; several may have one key, if they are for the same."""
        with self._lock:
            self._waits[key] += 1

    def end_wait(self, key: str) -> bool:
        """Record the end of a wait; returns whether nobody waits for the same any more."""
        with self._lock:
            self._waits[key] -= 1
            return not self._waits[key]


def _who_asks() -> object:
    """Return the task of the handler that runs now, or its thread."""
    try:
        return asyncio.current_task() or threading.current_thread()
    except RuntimeError:  # no event loop runs here
        return threading.current_thread()


def _added(futures: "list[concurrent.futures.Future[None]]") -> "concurrent.futures.Future[None]":
    future: concurrent.futures.Future[None] = concurrent.futures.Future()
    futures[:] = [one for one in futures if not one.cancelled()]  # asked for no longer
    futures.append(future)
    return future


def _fill(futures: "list[concurrent.futures.Future[None]]") -> None:
    for one in futures:
        if one.set_running_or_notify_cancel():
            one.set_result(None)


@dataclass(slots=True)
class GatedWait(Generic[AnswerT]):
    """One wait of a handler: asks the worker until it is over, or parks the job.

    `what` says in words what is waited for. `read` reads an answer; `give_up` tells the worker that
    the handler waits for this key no longer.
    """

    gate: ParkGate
    key: str
    what: str
    ask: Callable[[], "concurrent.futures.Future[Any]"]
    read: Callable[[Any], AnswerT]
    give_up: Callable[[str], object]
    _seen: int = 0
    """Ends in other tasks that the handler has had its moment for; at first none, so that one just
    before this wait counts as well."""

    async def answer(self) -> AnswerT:
        """Return the answer once the wait is over; raises Parked if it parks the job."""
        self.gate.begin_wait(self.key)
        cancelled = False
        try:
            while True:
                with self.gate.look():
                    answer = self.read(await _answered(self.ask))
                    if answer.is_over:
                        self.gate.note_end()
                        return answer
                soon = _soon(answer)
                if await self._may_park(soon):
                    await _done(self._park(), soon)
        except asyncio.CancelledError:
            cancelled = True
            self.gate.note_end()
            raise
        except Parked:
            _expect_parked(asyncio.current_task())
            raise
        finally:
            self._end(cancelled=cancelled)

    def answer_blocking(self) -> AnswerT:
        """Return the answer once the wait is over, in a sync handler."""
        self.gate.begin_wait(self.key)
        try:
            while True:
                with self.gate.look():
                    answer = self.read(_answered_blocking(self.ask))
                    if answer.is_over:
                        self.gate.note_end()
                        return answer
                soon = _soon(answer)
                if self._may_park_blocking(soon):
                    _done_blocking(self._park(), soon)
        finally:
            self._end(cancelled=False)

    def _end(self, *, cancelled: bool) -> None:
        last = self.gate.end_wait(self.key)
        if cancelled and last and not self.gate.parked:
            with suppress(AttemptOverError):
                self.give_up(self.key)

    def _park(self) -> "concurrent.futures.Future[None]":
        idle = self.gate.park(self._seen, self.what)
        if idle is None:
            raise Parked(f"the job is parked: {self.what}")
        return idle

    async def _may_park(self, seconds: float) -> bool:
        """Return whether all waits are known and the handler has reacted; else look again.

        After `seconds` it is time to look again, however much else goes on.
        """
        clock = asyncio.get_running_loop()
        until = clock.time() + seconds
        while (left := until - clock.time()) > 0:
            if (others := self.gate.unanswered()) is not None:
                await _done(others, left)
            elif self._is_settled():
                return True
            else:
                await asyncio.sleep(REACT_SECONDS)
        return False

    def _may_park_blocking(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if (others := self.gate.unanswered()) is not None:
                _done_blocking(others, left)
            elif self._is_settled():
                return True
            else:
                time.sleep(REACT_SECONDS)
        return False

    def _is_settled(self) -> bool:
        """Return whether nothing has ended in others since the handler last had its moment."""
        seen, self._seen = self._seen, self.gate.ends_of_others()
        return seen == self._seen


async def _done(future: "concurrent.futures.Future[None]", seconds: float) -> None:
    """Wait for something to be done, at most this long."""
    await asyncio.wait({asyncio.wrap_future(future)}, timeout=seconds)
    future.cancel()


def _done_blocking(future: "concurrent.futures.Future[None]", seconds: float) -> None:
    concurrent.futures.wait([future], timeout=seconds)
    future.cancel()


def _expect_parked(task: "asyncio.Task[Any] | None") -> None:
    """Have asyncio report no error nobody asks for: of several waits one ends the handler."""
    if task is not None:
        task.add_done_callback(lambda done: done.cancelled() or done.exception())


def _soon(answer: WaitAnswer) -> float:
    """Return how long to wait before looking again."""
    return LOOK_SECONDS if answer.left is None else min(answer.left, LOOK_SECONDS)


async def _answered(ask: Callable[[], "concurrent.futures.Future[Any]"]) -> Any:
    """Ask the worker; an attempt that is over ends the handler as a stop does."""
    try:
        return await asyncio.wrap_future(ask())
    except AttemptOverError as error:
        raise asyncio.CancelledError(str(error)) from error


def _answered_blocking(ask: Callable[[], "concurrent.futures.Future[Any]"]) -> Any:
    """Ask the worker, in a sync handler."""
    try:
        return ask().result()
    except (AttemptOverError, concurrent.futures.CancelledError) as error:
        raise asyncio.CancelledError(str(error)) from error
