"""Where an export goes: a file that appears once it is whole, or stdout, likewise.

A payload may be a secret: the file can be read by its owner alone.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile
from typing import IO, Final

from asyncjob.cli.backup.errors import failed
from asyncjob.cli.backup.format import line
from asyncjob.json_types import JsonObject

STDOUT: Final = "-"


class Spool:
    """Takes lines; what came after a mark can be taken back."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, obj: JsonObject) -> None:
        """Add a line."""
        self._stream.write(line(obj))

    def mark(self) -> int:
        """Return the place reached."""
        return self._stream.tell()

    def back_to(self, mark: int) -> None:
        """Forget what came after the mark."""
        self._stream.seek(mark)
        self._stream.truncate()


@contextmanager
def spooled(target: str) -> Iterator[Spool]:
    """Give a Spool; what was written is where it belongs once the block has ended without error.

    Raises FileFailedError.
    """
    name = "stdout" if target == STDOUT else target
    try:
        if target == STDOUT or _is_special(Path(target)):
            with _passed_on(target) as spool:
                yield spool
        else:
            with _in_place_of(Path(target).resolve()) as spool:
                yield spool
    except BrokenPipeError:
        raise
    except OSError as error:
        raise failed(name, error) from error


def _is_special(path: Path) -> bool:
    """Return whether it is a pipe or a device, which must not be replaced."""
    return path.exists() and not path.is_file()


@contextmanager
def _passed_on(target: str) -> Iterator[Spool]:
    with TemporaryFile() as stream:
        yield Spool(stream)
        stream.seek(0)
        if target == STDOUT:
            shutil.copyfileobj(stream, sys.stdout.buffer)
        else:
            with Path(target).open("wb") as out:
                shutil.copyfileobj(stream, out)


@contextmanager
def _in_place_of(path: Path) -> Iterator[Spool]:
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as stream:
        try:
            yield Spool(stream)
            stream.flush()
            os.fsync(stream.fileno())
            Path(stream.name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(stream.name).unlink()
            raise
