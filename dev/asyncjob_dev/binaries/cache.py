"""Where finished programs are kept between runs.

A path carries everything the program depends on, so nothing in the cache is ever stale. Programs
appear by rename, and a file lock keeps two processes from making the same one at once.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from asyncjob_dev.errors import CacheUnusableError, DiskFullError
from asyncjob_dev.progress import ProgressLine


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
            # Not "w", which would empty what the holder has written there.
            file = path.open("a+", encoding="utf-8")
        with file:
            with self.translate_errors():
                _wait_for(file, name)
                _sign(file)
            yield

    @property
    def go(self) -> Path:
        """Where Go keeps what it has fetched and compiled."""
        return self.root / "go"

    @contextlib.contextmanager
    def scratch(self, name: str) -> Iterator[Path]:
        """Give a folder for temporary files; call under the lock of that name.

        What a killed process has left there goes first.
        """
        folder = self.go / "tmp" / name
        shutil.rmtree(folder, ignore_errors=True)
        with self.translate_errors():
            folder.mkdir(parents=True, exist_ok=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

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


def holder_text(signature: str) -> str:
    """Return who holds a lock, by what `_sign` wrote; it may not have come to that."""
    pid, _, rest = signature.strip().partition("\t")
    command, _, since = rest.partition("\t")
    return f"process {pid} ({command}, since {since})" if since else "another process"


def _sign(file: TextIO) -> None:
    program = Path(sys.argv[0])
    # `python -m package` has the path of a file that is called alike in all packages.
    name = program.parent.name if program.stem == "__main__" else program.name
    command = " ".join([name, *sys.argv[1:]]).replace("\t", " ").replace("\n", " ")
    file.truncate(0)
    file.write(f"{os.getpid()}\t{command}\t{time.strftime('%H:%M:%S')}\n")
    file.flush()


def _wait_for(file: TextIO, name: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        with ProgressLine(f"waiting for {holder_text(file.read())}, which is getting {name}"):
            fcntl.flock(file, fcntl.LOCK_EX)
