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

from asyncjob.cli.backup.errors import file_error
from asyncjob.cli.backup.format import encode_line
from asyncjob.json_types import JsonObject

STDOUT: Final = "-"


class ExportWriter:
    """Takes lines; what came after a mark can be taken back."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, obj: JsonObject) -> None:
        """Add a line."""
        self._stream.write(encode_line(obj))

    def position(self) -> int:
        """Return the place reached."""
        return self._stream.tell()

    def truncate_to(self, position: int) -> None:
        """Forget what came after the mark."""
        self._stream.seek(position)
        self._stream.truncate()


@contextmanager
def create_export(target: str) -> Iterator[ExportWriter]:
    """Give a Spool; what was written is where it belongs once the block has ended without error.

    Raises FileFailedError.
    """
    name = "stdout" if target == STDOUT else target
    try:
        if target == STDOUT or _is_special(Path(target)):
            with _copy_when_complete(target) as spool:
                yield spool
        else:
            with _replace_when_complete(Path(target).resolve()) as spool:
                yield spool
    except BrokenPipeError:
        raise
    except OSError as error:
        raise file_error(name, error) from error


def _is_special(path: Path) -> bool:
    """Return whether it is a pipe or a device, which must not be replaced."""
    return path.exists() and not path.is_file()


@contextmanager
def _copy_when_complete(target: str) -> Iterator[ExportWriter]:
    with TemporaryFile() as stream:
        yield ExportWriter(stream)
        stream.seek(0)
        if target == STDOUT:
            shutil.copyfileobj(stream, sys.stdout.buffer)
        else:
            with Path(target).open("wb") as out:
                shutil.copyfileobj(stream, out)


@contextmanager
def _replace_when_complete(path: Path) -> Iterator[ExportWriter]:
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as stream:
        try:
            yield ExportWriter(stream)
            stream.flush()
            os.fsync(stream.fileno())
            Path(stream.name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(stream.name).unlink()
            raise
