"""What other processes can learn of a running environment.

Who holds its folder, by a lock that dies with its process, and what runs, by a state file. A lock
cannot be stale, unlike a file with a process id; the lock file comes into place locked and with its
holder's id in it, so that the two always belong together.
"""

import fcntl
import json
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TextIO

from asyncjob_dev.errors import EnvironmentInUseError
from asyncjob_dev.files import translate_folder_errors, write_private

POLL_SECONDS = 0.05


def acquire_lock(lock: Path) -> TextIO:
    """Hold the lock for as long as the returned file is open; raises EnvironmentInUseError."""
    lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with lock.with_suffix(".guard").open("a") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if (pid := lock_holder(lock)) is not None:
            raise EnvironmentInUseError(lock.parent, pid)
        draft = lock.with_suffix(".new")
        held = draft.open("w", encoding="ascii")
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write(f"{os.getpid()}\n")
        held.flush()
        draft.replace(lock)
        return held


def lock_holder(lock: Path) -> int | None:
    """Return the id of the process that holds the lock; None if nobody does."""
    with translate_folder_errors(lock.parent):
        try:
            file = lock.open(encoding="ascii")
        except FileNotFoundError:
            return None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(file.read())
    return None


def wait_unlocked(lock: Path, within: float) -> bool:
    """Wait until nobody holds the lock; False when that took too long."""
    deadline = time.monotonic() + within
    while lock_holder(lock) is not None:
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


@dataclass(frozen=True)
class RunningPart:
    """One thing that runs; `pid` is None once it has ended."""

    name: str
    pid: int | None
    restarts: int = 0


@dataclass(frozen=True)
class EnvironmentState:
    """All of it. `port` is the API server's, to be taken again the next time.

    Without parts it is not complete: the environment is starting or stopping.
    """

    port: int
    app: str
    parts: list[RunningPart] = field(default_factory=list)
    workers: int = 0
    slots: int = 0
    queues: str = ""
    gateway_port: int = 0


def save_state(path: Path, state: EnvironmentState) -> None:
    """Write the file in one step."""
    write_private(path, json.dumps(asdict(state)))


def load_state(path: Path) -> EnvironmentState | None:
    """Read the file; None when there is none, or none that makes sense."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        parts = [RunningPart(**part) for part in found.pop("parts")]
        return EnvironmentState(**found, parts=parts)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
