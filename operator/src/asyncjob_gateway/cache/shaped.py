"""What is left of a job's object as soon as a list or a watch shows it: all that the cache keeps.

It is read there and then, object by object, so that a list of many is neither kept whole nor read
at one stretch once its last page has come.
"""

from typing import Final

import structlog

from asyncjob.json_types import Json, JsonObject, child
from asyncjob_gateway.cache.entry import Entry, entry_of

log = structlog.get_logger()

_META: Final = ("uid", "resourceVersion")


class Shaped(dict[str, Json]):
    """A job's uid and version as an object has them, and its entry; None where it has none."""

    def __init__(self, obj: JsonObject) -> None:
        meta = child(obj, "metadata")
        super().__init__(metadata={name: meta[name] for name in _META if name in meta})
        self.entry = _read(obj)


def entry_in(obj: JsonObject) -> Entry | None:
    """Return the entry of a job, whole or shaped; None where it cannot be read."""
    return obj.entry if isinstance(obj, Shaped) else _read(obj)


def _read(obj: JsonObject) -> Entry | None:
    try:
        return entry_of(obj)
    except ValueError as error:  # a phase that this version does not know
        log.warning("job not readable", error=str(error))
        return None
