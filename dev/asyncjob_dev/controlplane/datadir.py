"""The folder of one control plane: locked while in use, gone afterwards if it was temporary.

A killed program cannot clean up. Its temporary folder holds 60 MB and more, so the next one looks
for folders whose lock nobody holds and removes them.
"""

import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from asyncjob_dev.errors import DataDirInUseError, TemporaryFolderError
from asyncjob_dev.files import translate_folder_errors

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
    with translate_folder_errors(path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = _try_lock(path)
    if lock is None:
        raise DataDirInUseError(path)
    return DataDir(path.absolute(), lock, temporary=False)


def claim_temporary(parent: Path | None = None) -> DataDir:
    """Create and lock a folder that goes with its user; remove those of the dead."""
    try:
        where = parent or Path(tempfile.gettempdir())
        remove_stale(where)
        # Under another name until it is locked, so that nobody sweeps it in between.
        draft = Path(tempfile.mkdtemp(prefix=f"new-{PREFIX}", dir=where))
        lock = _try_lock(draft)
        assert lock is not None
        return DataDir(draft.rename(where / draft.name.removeprefix("new-")), lock, temporary=True)
    except OSError as error:
        raise TemporaryFolderError(error) from error


def remove_stale(parent: Path) -> None:
    """Remove the temporary folders of this user that nobody holds."""
    for folder in parent.glob(f"{PREFIX}*"):
        # A folder that cannot be looked at or removed is no reason not to start.
        with suppress(OSError):
            if _is_ours(folder) and (folder / LOCK).exists():
                _remove_unless_held(folder)


def _is_ours(folder: Path) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _remove_unless_held(folder: Path) -> None:
    if lock := _try_lock(folder):
        with lock:
            shutil.rmtree(folder, ignore_errors=True)


def _open_lock(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, mode=0o600)


def _try_lock(folder: Path) -> TextIO | None:
    # Not through a link: the folder of temporary files is everybody's.
    lock = open(folder / LOCK, "a", encoding="ascii", opener=_open_lock)  # noqa: SIM115
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock
