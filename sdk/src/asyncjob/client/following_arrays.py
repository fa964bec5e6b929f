"""Following an array until it has ended; the same behind a gateway and on Kubernetes.

It is read again and again, not watched: an array runs for long, changes up to twice a second, and a
change may be as large as its items. A server that is away is waited for.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

from asyncjob.backoff import backoff_delay
from asyncjob.client.connection import INITIAL_DELAY_SECONDS, Connection
from asyncjob.client.errors import ArrayGoneError, ArrayNotFoundError, WaitTimeoutError
from asyncjob.client.following import GRACE_SECONDS, MAX_SILENCE_SECONDS
from asyncjob.errors import AsyncJobError
from asyncjob.rest.arrays import ArrayInfo

ReadArray = Callable[[float | None], Awaitable[ArrayInfo]]
"""Reads the array once, within this many seconds, without another try."""


@dataclass(slots=True)
class _ArrayFollowState:
    """What is known of the array, and of the time."""

    name: str
    deadline: float | None
    last: ArrayInfo | None = None
    failures: int = 0

    def read_timeout(self, now: float) -> float | None:
        """Return how long a look may take, in seconds; there is always time for one."""
        return None if self.deadline is None else max(self.deadline - now, GRACE_SECONDS)

    def delay(self, wanted: float, now: float) -> float:
        """Return how long to wait; raises WaitTimeoutError where there is no time left."""
        if self.deadline is None:
            return wanted
        if now >= self.deadline:
            where = f"is {self.last.phase.value}" if self.last else "could not be read"
            raise WaitTimeoutError(f"array {self.name} has not ended in time: it {where}")
        return min(wanted, self.deadline - now)

    def delay_after(self, error: AsyncJobError) -> float:
        """Return how long to wait after a look that failed; raises what no other look mends."""
        if isinstance(error, ArrayNotFoundError) and self.last is not None:
            raise ArrayGoneError(f"array {self.name} was deleted while it was watched") from error
        if not error.retryable:
            raise error
        self.failures += 1
        return backoff_delay(self.failures, INITIAL_DELAY_SECONDS, MAX_SILENCE_SECONDS)

    def record(self, array: ArrayInfo) -> bool:
        """Take the array as it is; returns whether anybody would see a difference."""
        before, self.last, self.failures = self.last, array, 0
        if before is not None and before.uid != array.uid:
            raise ArrayGoneError(f"array {self.name} was deleted, and another has its name")
        return before != array


async def follow_array(
    connection: Connection,
    read: ReadArray,
    name: str,
    *,
    timeout: float | None,  # noqa: ASYNC109  # it ends in an error of its own
    poll_seconds: float,
) -> AsyncGenerator[ArrayInfo]:
    """Yield the array now and whenever it is found changed, until it has ended."""
    deadline = None if timeout is None else connection.time() + timeout
    state = _ArrayFollowState(name, deadline)
    while True:
        delay = poll_seconds
        try:
            array = await read(state.read_timeout(connection.time()))
        except AsyncJobError as error:
            delay = state.delay_after(error)
        else:
            if state.record(array):
                yield array
            if array.finished:
                return
        await connection.pause(state.delay(delay, connection.time()))
