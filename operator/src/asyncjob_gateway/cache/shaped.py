"""What is left of a job's object as soon as a list or a watch shows it: all that the cache keeps.

It is read there and then, object by object, so that a list of many is neither kept whole nor read
at one stretch once its last page has come.
"""

from typing import Final

import structlog

from asyncjob.json_types import Json, JsonObject, child
from asyncjob_gateway.cache.entry import CachedJob, read_cached_job

log = structlog.get_logger()

_KEPT_METADATA: Final = ("uid", "resourceVersion")


class TrimmedJob(dict[str, Json]):
    """A job's uid and version as an object has them, and its entry; None where it has none."""

    def __init__(self, obj: JsonObject) -> None:
        meta = child(obj, "metadata")
        super().__init__(metadata={name: meta[name] for name in _KEPT_METADATA if name in meta})
        self.cached = _read_or_log(obj)


def cached_job_of(obj: JsonObject) -> CachedJob | None:
    """Return the entry of a job, whole or shaped; None where it cannot be read."""
    return obj.cached if isinstance(obj, TrimmedJob) else _read_or_log(obj)


def _read_or_log(obj: JsonObject) -> CachedJob | None:
    try:
        return read_cached_job(obj)
    except ValueError as error:  # a phase that this version does not know
        log.warning("job not readable", error=str(error))
        return None
