"""Who holds an environment's folder: one process, known by a lock that dies with it.

A lock cannot be stale, unlike a file with a process id. The file comes into place locked and with
its holder's id in it, so that the two always belong together.
"""

import fcntl
import os
import time
from pathlib import Path
from typing import TextIO

from asyncjob_dev.environment.errors import EnvironmentInUseError
from asyncjob_dev.files import translate_folder_errors

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
