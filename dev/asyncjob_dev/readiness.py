"""Waiting for something to become true, as long as the processes it depends on live."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from asyncjob_dev.diagnosis import process_died_error
from asyncjob_dev.errors import NotReadyError

READY_POLL_INTERVAL = 0.05


class Waitable(Protocol):
    """What must stay alive meanwhile."""

    @property
    def name(self) -> str:
        """For people."""

    @property
    def returncode(self) -> int | None:
        """None while it runs."""

    def log_tail(self) -> str:
        """Return what it last wrote since it was started."""


def wait_until(
    ready: Callable[[], bool], what: str, *, within: float, alive: Sequence[Waitable] = ()
) -> None:
    """Poll `ready`; raise `ProcessDiedError` or `NotReadyError` with the end of the log."""
    deadline = time.monotonic() + within
    while True:
        # First, because what answers may be somebody else's, on the port that ours did not get.
        for process in alive:
            if process.returncode is not None:
                raise process_died_error(process.name, process.returncode, process.log_tail())
        if ready():
            return
        if time.monotonic() >= deadline:
            log = alive[-1].log_tail() if alive else ""
            raise NotReadyError(what, within, alive[-1].name if alive else None, log)
        time.sleep(READY_POLL_INTERVAL)
