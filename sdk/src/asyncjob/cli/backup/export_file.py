"""The export file.

JSON lines with a header, one object per line, and a footer with the counts by which a truncated
file is recognised. It is written to a temporary file and moved into place when complete; payloads
may be secret, so only its owner can read it.
"""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile
from typing import IO, Final

from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.output.printer import CommandFailedError
from asyncjob.cli.output.tables import one_line
from asyncjob.deep_json import encode
from asyncjob.json_types import Json, JsonObject, child
from asyncjob.lifecycle.signals import readable_signals, signals_of
from asyncjob.names import (
    ARRAY_KIND,
    ARRAYS,
    CRON_JOB_KIND,
    CRON_JOBS,
    JOB_KIND,
    JOBS,
    QUEUE_KIND,
    QUEUES,
)


class FileFailedError(CommandFailedError):
    """A file cannot be read or written."""

    exit_code = ExitCode.FAILED
    code = "configuration"


class BrokenExportError(CommandFailedError):
    """The file is no export, or not a whole one; nothing was created."""

    exit_code = ExitCode.USAGE
    last_line = "nothing was restored"
    code = "configuration"


def file_error(name: str, error: OSError) -> FileFailedError:
    """Return what the system's refusal means."""
    return FileFailedError(one_line(f"{name}: {error.strerror or error}"))


FORMAT: Final = 1
"""Raised when an older command line would read a file wrongly."""

HEADER_KIND: Final = "AsyncJobExport"
FOOTER_KIND: Final = "AsyncJobExportEnd"

PLURALS: Final[Mapping[str, str]] = {
    QUEUE_KIND: QUEUES,
    CRON_JOB_KIND: CRON_JOBS,
    ARRAY_KIND: ARRAYS,
    JOB_KIND: JOBS,
}
"""What is exported, in the order in which it is restored: a job may be of a cron job."""


def header(*, version: str, time: str, namespace: str | None, queues: Sequence[str]) -> JsonObject:
    """Return the first line; `namespace` None: all of them, no `queues`: all of them."""
    chosen: JsonObject = {"queues": list(queues)} if queues else {}
    return {
        "kind": HEADER_KIND,
        "format": FORMAT,
        "version": version,
        "time": time,
        "namespace": namespace or "*",
        **chosen,
    }


def footer(counts: Mapping[str, int]) -> JsonObject:
    """Return the last line."""
    return {"kind": FOOTER_KIND, "counts": dict(counts)}


def encode_line(obj: JsonObject) -> bytes:
    """Return a line of the file, its end included; raises InvalidError for what is too deep."""
    return encode(obj) + b"\n"


def exported_object(
    obj: JsonObject, kind: str, api_version: str, levels: int | None = None
) -> JsonObject:
    """Return an object as it is kept: all of it but for the bookkeeping of who wrote which field.

    Objects in a list may come without their kind. Of a signal whose payload is too much it says so:
    a restore sends no signals, and so leaves nothing out because of one. `levels` says how many
    levels of the object were read, if not all.
    """
    metadata: dict[str, Json] = dict(child(obj, "metadata"))
    metadata.pop("managedFields", None)
    exported: dict[str, Json] = {
        **obj,
        "apiVersion": api_version,
        "kind": kind,
        "metadata": metadata,
    }
    spec = child(obj, "spec")
    if kind == JOB_KIND and "signals" in spec:
        exported["spec"] = {**spec, "signals": readable_signals(signals_of(spec), levels)}
    return exported


STDOUT: Final = "-"


class ExportWriter:
    """Takes lines; what came after a mark can be taken back."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, obj: JsonObject) -> None:
        """Add a line; raises InvalidError for an object that is too deep, and adds nothing."""
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
    """Yield a writer; what was written is where it belongs once the block has ended without error.

    Raises FileFailedError.
    """
    name = "stdout" if target == STDOUT else target
    try:
        if target == STDOUT or _is_special(Path(target)):
            with _copy_when_complete(target) as writer:
                yield writer
        else:
            with _replace_when_complete(Path(target).resolve()) as writer:
                yield writer
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
