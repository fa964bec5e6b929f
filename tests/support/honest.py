"""A tenant who does nothing wrong, and how long the operator and its worker make it wait."""

import threading
import time
from types import TracebackType
from typing import Any, Final, Self

from asyncjob_dev.api import Object
from asyncjob_dev.errors import ApiError, ApiUnavailableError
from support.operator import OperatorProcess
from support.workers import Field

WITHIN: Final = 2.0
"""Seconds from a job's creation to its first start, whatever others do."""

PAUSE_SECONDS: Final = 0.3
PATIENCE: Final = 60.0
LOOK_SECONDS: Final = 0.02


def broken_loops(operator: OperatorProcess) -> list[str]:
    """Return what the operator says of loops that failed, but for kopf's watch of schedules.

    kopf cannot parse a schedule that is nested some 1,000 levels deep. Its watch begins anew then,
    with a comparison, every ten seconds at the latest, as the operator's reference says.
    """
    lines = operator.logs().splitlines()
    return [line for line in lines if "loop restarting" in line and "loop=kopf" not in line]


class HonestTenant:
    """Submits one job after the other while others misbehave; a context manager.

    Each job has a deduplication id of its own, so that the operator has to admit it before the
    worker may claim it. A worker must be running in the field.
    """

    def __init__(self, field: Field, queue: str = "honest") -> None:
        self._field = field
        self._queue = queue
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._number = 0
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

    def once(self) -> float:
        """Submit a job and return the seconds until it has begun."""
        self._number += 1
        name = f"honest-{self._number}"
        spec: dict[str, Any] = {"queue": self._queue, "deduplicationId": name}
        begun = time.monotonic()
        self._field.create(name, "echo", self._number, **spec)
        while not self._has_begun(name):
            if time.monotonic() - begun > PATIENCE:
                raise AssertionError(f"{name} has not begun: {self._field.status(name)}")
            time.sleep(LOOK_SECONDS)
        return time.monotonic() - begun

    def check(self, at_least: int = 3) -> None:
        """Check that jobs were submitted all the while, and that none has waited too long."""
        assert not self.failure, self.failure
        assert len(self.waits) >= at_least, f"only {len(self.waits)} jobs were submitted"
        assert max(self.waits) <= WITHIN, [round(one, 2) for one in self.waits if one > WITHIN]

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.waits.append(self.once())
            except (AssertionError, ApiError, ApiUnavailableError) as error:
                self.failure = str(error)
                return
            self._stop.wait(PAUSE_SECONDS)

    def _has_begun(self, name: str) -> bool:
        status: Object = self._field.status(name)
        return "firstStartTime" in status
