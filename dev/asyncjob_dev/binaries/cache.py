"""Where finished programs are kept between runs.

A path carries everything the program depends on, so nothing in the cache is ever stale. Programs
appear by rename, and a file lock keeps two processes from making the same one at once.
"""

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from asyncjob_dev.errors import CacheUnusableError, DiskFullError
from asyncjob_dev.progress import Progress


def cache_dir(environ: Mapping[str, str]) -> Path:
    """Return the folder that the environment asks for; it may not exist yet."""
    if own := environ.get("ASYNCJOB_CACHE"):
        return Path(own).absolute()
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "asyncjob"


def is_executable(path: Path) -> bool:
    """Whether this is a program we may run."""
    return path.is_file() and os.access(path, os.X_OK)


class BinaryCache:
    """Programs by tool, version, platform and the digest of what they were made from."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, tool: str, version: str, target: str, digest: str) -> Path:
        """Return where that program belongs, whether it is there or not."""
        return self.root / "bin" / f"{tool}-{version}-{target}-{digest}" / tool

    def has(self, path: Path) -> bool:
        """Whether the program at `path` is there; raises `CacheUnusableError`."""
        with self.translate_errors():
            return is_executable(path)

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Keep other processes from making `name` meanwhile; says so when it has to wait."""
        path = self.root / "locks" / f"{name}.lock"
        with self.translate_errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("w")
        with file:
            with self.translate_errors():
                _wait_for(file, name)
            yield

    def draft(self, final: Path) -> Path:
        """Return where to make the program, on the same disk; call under the lock."""
        with self.translate_errors():
            final.parent.mkdir(parents=True, exist_ok=True)
        return final.with_name(f".{final.name}.partial")

    def install(self, draft: Path, final: Path) -> None:
        """Let the finished draft appear."""
        with self.translate_errors():
            draft.chmod(0o755)
            draft.replace(final)

    def clear(self) -> None:
        """Remove every program."""
        shutil.rmtree(self.root / "bin", ignore_errors=True)

    @contextlib.contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Turn ENOSPC and a full quota into `DiskFullError`, others into `CacheUnusableError`."""
        try:
            yield
        except OSError as error:
            if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                raise DiskFullError(self.root) from error
            raise CacheUnusableError(self.root, error) from error


def _wait_for(file: TextIO, name: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with Progress(f"waiting for another process that is getting {name}"):
            fcntl.flock(file, fcntl.LOCK_EX)
