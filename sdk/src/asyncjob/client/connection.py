"""One request, its answer and how long to go on trying: what both ways to the jobs stand on."""

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from asyncjob.backoff import backoff_delay
from asyncjob.errors import AsyncJobError
from asyncjob.json_types import Json, JsonObject, as_object

JSON_TYPE: Final = "application/json"
MERGE_PATCH_CONTENT_TYPE: Final = "application/merge-patch+json"
JSON_PATCH_CONTENT_TYPE: Final = "application/json-patch+json"

INITIAL_DELAY_SECONDS: Final = 0.2
MAX_DELAY_SECONDS: Final = 5.0
"""Pauses between tries: the first, and the longest.

The first is short, because somebody waits for the answer. The longest is how much later than
possible a server that is back is noticed.
"""

JITTER: Final = (0.8, 1.2)
"""Pauses are this much shorter or longer by chance, so that many clients do not come back at once.
"""


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `params` may name one parameter several times."""

    method: str
    path: str
    params: tuple[tuple[str, str], ...] = ()
    body: Json = None
    content_type: str = JSON_TYPE
    accept: str = JSON_TYPE
    headers: tuple[tuple[str, str], ...] = ()

    timeout_seconds: float | None = None
    """How long an answer is waited for; None leaves that to the connection."""

    max_bytes: int | None = None
    """An answer that becomes larger is not read to its end, but raises PageTooLargeError.

    A connection to a gateway does not count.
    """


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request; `size` is how many bytes were read, 0 where nobody counts them."""

    body: Json = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    size: int = 0

    @property
    def object(self) -> JsonObject:
        """Return the body where it is an object, else an empty one."""
        return as_object(self.body)


NextEvent: TypeAlias = Callable[[], Awaitable[JsonObject | None]]
"""Waits for the next event of a stream; None once it has ended, however, or is too quiet."""


class Connection(ABC):
    """Sends requests and opens streams, and tells the time meanwhile."""

    @abstractmethod
    async def send(self, call: Call) -> Answer:
        """Send a request once; raises AsyncJobError where no answer comes."""

    @abstractmethod
    def stream(self, call: Call, max_silence: float) -> AbstractAsyncContextManager[NextEvent]:
        """Open a stream of events; it ends when nothing comes for `max_silence` seconds.

        Raises AsyncJobError where it cannot be opened.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close all that is open."""

    def time(self) -> float:
        """Return the seconds of a clock that never goes back."""
        return asyncio.get_running_loop().time()

    def server_time(self) -> float | None:
        """Return the server's clock in epoch seconds, None where it has not told it."""
        return None

    async def pause(self, seconds: float) -> None:
        """Wait for about `seconds`."""
        await self.sleep(seconds * random.uniform(*JITTER))

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        await asyncio.sleep(seconds)


@dataclass(slots=True)
class RetryBudget:
    """How long failures that may pass are waited out; begins with the first of them."""

    connection: Connection
    seconds: float
    _since: float | None = None
    _failures: int = 0

    async def wait_or_raise(self, error: AsyncJobError) -> None:
        """Wait before another try; raises the error where another try is of no use, or too late."""
        if not error.retryable:
            raise error
        now = self.connection.time()
        self._since = now if self._since is None else self._since
        self._failures += 1
        pause = backoff_delay(self._failures, INITIAL_DELAY_SECONDS, MAX_DELAY_SECONDS)
        if now + pause - self._since > self.seconds:
            raise error
        await self.connection.pause(max(pause, getattr(error, "retry_after", None) or 0.0))
