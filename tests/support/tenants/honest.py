"""Tenants who do nothing wrong, and how long the operator and its worker make them wait."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from types import TracebackType
from typing import Any, Final, Self

from asyncjob.names import ARRAYS, collection_path
from asyncjob_dev.api import Object
from asyncjob_dev.errors import ApiStatusError, ApiUnavailableError
from support.driven.crons import Crons
from support.driven.jobs import Jobs
from support.objects.builders import array
from support.processes.operator import OperatorProcess
from support.processes.workers import WorkerNamespace

WITHIN: Final = 2.0
"""Seconds from a job's creation to its first start, or from a trigger to its run's creation."""

FACTOR: Final = 3.0
"""So many times as long as alone an honest tenant may wait beside any other, in the median."""

FLOOR: Final = 0.3
"""Seconds that count as no wait at all: a busy machine alone makes that much of a difference."""

ALONE: Final = 7
"""How often a tenant asks while nobody else does anything."""

PAUSE_SECONDS: Final = 0.3
PATIENCE: Final = 60.0
LOOK_SECONDS: Final = 0.02


def broken_loops(operator: OperatorProcess) -> list[str]:
    """Return what the operator says of loops that failed."""
    return [line for line in operator.logs().splitlines() if "loop restarting" in line]


def harm(before: Sequence[float], beside: Sequence[float], after: Sequence[float]) -> str:
    """Return how an honest tenant's waits were lengthened by another beside it; empty if not.

    What the machine does meanwhile shows in the waits alone, before or after.
    """
    alone, then, again = (max(median(waits), FLOOR) for waits in (before, beside, after))
    if then > FACTOR * max(alone, again):
        return f"{then:.2f} s in the median beside it, {alone:.2f} and {again:.2f} s alone"
    if again > FACTOR * alone:
        return f"{again:.2f} s in the median after it, {alone:.2f} s before"
    longest = max(WITHIN, FACTOR * max(*before, *after))
    late = [round(one, 2) for one in beside if one > longest]
    return f"longer than {longest:.2f} s: {late}" if late else ""


class Honest(ABC):
    """Asks for one thing after the other while others misbehave; a context manager."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.waits: list[float] = []
        self.failure = ""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join(PATIENCE + 5)

    @abstractmethod
    def once(self) -> float:
        """Ask once and return the seconds until it has come."""

    def some(self, times: int = ALONE) -> list[float]:
        """Ask so many times, and return how long each took."""
        return [self.once() for _ in range(times)]

    @contextmanager
    def undisturbed(self, at_least: int) -> Iterator[Self]:
        """Ask all the while, and check that it made no difference what was done meanwhile."""
        before = self.some()
        with self:
            yield self
        after = self.some()
        assert not self.failure, self.failure
        assert len(self.waits) >= at_least, f"it was asked only {len(self.waits)} times"
        assert not (told := harm(before, self.waits, after)), told

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.waits.append(self.once())
            except (AssertionError, ApiStatusError, ApiUnavailableError) as error:
                self.failure = str(error)
                return
            self._stop.wait(PAUSE_SECONDS)


class HonestTenant(Honest):
    """Submits jobs; `once` returns the seconds until one has begun.

    Each job has a deduplication id of its own, so that the operator has to admit it before the
    worker may claim it. A worker must be running in the field.
    """

    def __init__(self, ns: WorkerNamespace, queue: str = "honest") -> None:
        super().__init__()
        self._ns = ns
        self._queue = queue
        self._number = 0

    def once(self) -> float:
        """Submit a job and return the seconds until it has begun."""
        self._number += 1
        name = f"honest-{self._number}"
        spec: dict[str, Any] = {"queue": self._queue, "deduplicationId": name}
        begun = time.monotonic()
        self._ns.create(name, "echo", self._number, **spec)
        while not self._has_begun(name):
            if time.monotonic() - begun > PATIENCE:
                raise AssertionError(f"{name} has not begun: {self._ns.status(name)}")
            time.sleep(LOOK_SECONDS)
        return time.monotonic() - begun

    def _has_begun(self, name: str) -> bool:
        status: Object = self._ns.status(name)
        return "firstStartTime" in status


class HonestArrays(Honest):
    """Submits arrays; `once` returns the seconds until the first chunk of one exists."""

    def __init__(self, ns: WorkerNamespace) -> None:
        super().__init__()
        self._ns = ns
        self._number = 0

    def once(self) -> float:
        """Submit an array, return the seconds until its chunk is there, and delete it."""
        self._number += 1
        path = collection_path(self._ns.namespace, ARRAYS)
        body = array(f"honest-{self._number}", items={"count": 1})
        begun = time.monotonic()
        self._ns.api.create(path, body)
        one = f"{path}/{body['metadata']['name']}"
        while not (open_chunks := self._ns.api.get(one)["status"].get("open")) or not (
            open_chunks[0].get("uid")
        ):
            if time.monotonic() - begun > PATIENCE:
                raise AssertionError(f"no chunk: {self._ns.api.get(one)['status']}")
            time.sleep(LOOK_SECONDS)
        waited = time.monotonic() - begun
        self._ns.api.delete(one)
        return waited


class HonestSchedule(Honest):
    """Triggers a cron job; `once` returns the seconds until the run's job is there."""

    def __init__(self, jobs: Jobs, name: str = "honest") -> None:
        super().__init__()
        self._crons = Crons(jobs)
        self._name = name
        self._trigger = 0
        self._crons.create(name, suspend=True)

    def once(self) -> float:
        """Trigger it and return the seconds until there is one more run."""
        self._trigger += 1
        begun = time.monotonic()
        self._crons.change(self._name, trigger=self._trigger)
        while len(self._crons.names(self._name)) < self._trigger:
            if time.monotonic() - begun > PATIENCE:
                raise AssertionError(f"no run: {self._crons.status(self._name)}")
            time.sleep(LOOK_SECONDS)
        return time.monotonic() - begun
