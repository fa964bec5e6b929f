"""The file: JSON lines. A head, one object in each line, an end that says how many there were.

The end is how a file that was cut off is told from a whole one.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from asyncjob.cli.backup.errors import TooDeepError
from asyncjob.json_types import Json, JsonObject, child, text
from asyncjob.names import CRON_JOB_KIND, CRON_JOBS, JOB_KIND, JOBS, QUEUE_KIND, QUEUES

FORMAT: Final = 1
"""Raised when an older command line would read a file wrongly."""

HEADER_KIND: Final = "AsyncJobExport"
FOOTER_KIND: Final = "AsyncJobExportEnd"

PLURALS: Final[Mapping[str, str]] = {QUEUE_KIND: QUEUES, CRON_JOB_KIND: CRON_JOBS, JOB_KIND: JOBS}
"""What is exported, in the order in which it is restored: a job may be of a schedule."""


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
    """Return a line of the file, its end included; raises TooDeepError."""
    try:
        return orjson.dumps(obj, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError as error:
        meta = child(obj, "metadata")
        raise TooDeepError(text(meta, "namespace"), text(meta, "name")) from error


def exported_object(obj: JsonObject, kind: str, api_version: str) -> JsonObject:
    """Return an object as it is kept: all of it but for the bookkeeping of who wrote which field.

    Objects in a list may come without their kind.
    """
    metadata: dict[str, Json] = dict(child(obj, "metadata"))
    metadata.pop("managedFields", None)
    return {**obj, "apiVersion": api_version, "kind": kind, "metadata": metadata}
