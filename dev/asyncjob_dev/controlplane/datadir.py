"""The folder of one control plane: locked while in use, gone afterwards if it was temporary.

A killed program cannot clean up. Its temporary folder holds 60 MB and more, so the next one looks
for folders whose lock nobody holds and removes them.
"""

import fcntl
import shutil
import tempfile
from pathlib import Path
from typing import TextIO

from asyncjob_dev.errors import DataDirInUseError

PREFIX = "asyncjob-dev-"
LOCK = ".lock"


class DataDir:
    """A locked folder."""

    def __init__(self, path: Path, lock: TextIO, *, temporary: bool) -> None:
        self.path = path
        self._lock = lock
        self._temporary = temporary

    def release(self) -> None:
        """Unlock, and remove what is temporary."""
        if self._temporary:
            shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def claim(path: Path) -> DataDir:
    """Lock a folder that stays, creating it if need be."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = _try_lock(path)
    if lock is None:
        raise DataDirInUseError(path)
    return DataDir(path.absolute(), lock, temporary=False)


def claim_temporary(parent: Path | None = None) -> DataDir:
    """Create and lock a folder that goes with its user; remove those of the dead."""
    where = parent or Path(tempfile.gettempdir())
    sweep(where)
    # Under another name until it is locked, so that nobody sweeps it in between.
    draft = Path(tempfile.mkdtemp(prefix=f"new-{PREFIX}", dir=where))
    lock = _try_lock(draft)
    assert lock is not None
    return DataDir(draft.rename(where / draft.name.removeprefix("new-")), lock, temporary=True)


def sweep(parent: Path) -> None:
    """Remove the temporary folders that nobody holds."""
    for folder in parent.glob(f"{PREFIX}*"):
        if (folder / LOCK).exists() and (lock := _try_lock(folder)):
            with lock:
                shutil.rmtree(folder, ignore_errors=True)


def _try_lock(folder: Path) -> TextIO | None:
    try:
        lock = (folder / LOCK).open("a")
    except (FileNotFoundError, PermissionError):
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock
