"""What the cache keeps of an object: of a job its summary and what it is filtered by.

It is read from each object as soon as a list or a watch delivers it, so that whole objects are
never kept.
"""

from dataclasses import dataclass

import structlog

from asyncjob.json_types import Json, JsonObject, child, text
from asyncjob.names import CRON_JOB_LABEL, PARENT_NAME_ANNOTATION
from asyncjob.rest.arrays import ArrayInfo, array_of
from asyncjob.rest.job_reading import summary_of
from asyncjob.rest.jobs import JobSummary
from asyncjob.rest.listing import ListPosition, position_of
from asyncjob.rest.resources import CronJobInfo, cron_job_of


@dataclass(frozen=True, slots=True)
class CachedJob:
    """A job; `version` grows with every change of it, `text` is what free text is looked for in."""

    sort_key: ListPosition
    version: int
    summary: JobSummary
    parent: str
    rerun_of: str
    cron_job: str
    search_text: str


def read_cached_job(obj: JsonObject) -> CachedJob:
    """Read a job; raises ValueError on a phase that this version does not know."""
    meta, summary = child(obj, "metadata"), summary_of(obj)
    error = summary.error
    words = (
        *(summary.id, summary.type, summary.message or ""),
        *((error.type, error.message) if error else ()),
    )
    return CachedJob(
        sort_key=position_of(summary),
        version=parse_version(text(meta, "resourceVersion")),
        summary=summary,
        parent=text(child(meta, "annotations"), PARENT_NAME_ANNOTATION),
        rerun_of=text(child(child(obj, "spec"), "rerunOf"), "name"),
        cron_job=text(child(meta, "labels"), CRON_JOB_LABEL),
        search_text="\n".join(words).casefold(),
    )


def parse_version(resource_version: str) -> int:
    """Return a resourceVersion as a number, which the API server promises that it is."""
    return int(resource_version) if resource_version.isdecimal() else 0


log = structlog.get_logger()


def _metadata(obj: JsonObject, *kept: str) -> JsonObject:
    meta = child(obj, "metadata")
    return {name: meta[name] for name in ("uid", "resourceVersion", *kept) if name in meta}


class TrimmedJob(dict[str, Json]):
    """A job's uid and version as an object has them, and its entry; None where it has none."""

    def __init__(self, obj: JsonObject) -> None:
        super().__init__(metadata=_metadata(obj))
        self.cached = _read_or_log(obj)


class TrimmedCronJob(dict[str, Json]):
    """A cron job's names and version as an object has them; `info` None: it cannot be read."""

    def __init__(self, obj: JsonObject) -> None:
        super().__init__(metadata=_metadata(obj, "name"))
        self.info = _cron_job_info(obj)


class TrimmedArray(dict[str, Json]):
    """An array's names and version as an object has them; `info` None: it cannot be read."""

    def __init__(self, obj: JsonObject) -> None:
        super().__init__(metadata=_metadata(obj, "name"))
        self.info = _array_info(obj)


def trim_queue(obj: JsonObject) -> JsonObject:
    """Return an AsyncQueue without its annotations and managedFields, which may be large."""
    kept = {part: obj[part] for part in ("spec", "status") if part in obj}
    return {"metadata": _metadata(obj, "name", "namespace"), **kept}


def trim_lease(obj: JsonObject) -> JsonObject:
    """Return a worker's Lease without its managedFields; its annotations say what it does."""
    kept = _metadata(obj, "name", "namespace", "labels", "annotations")
    return {"metadata": kept, "spec": child(obj, "spec")}


def cached_job_of(obj: JsonObject) -> CachedJob | None:
    """Return the entry of a job, whole or shaped; None where it cannot be read."""
    return obj.cached if isinstance(obj, TrimmedJob) else _read_or_log(obj)


def _read_or_log(obj: JsonObject) -> CachedJob | None:
    try:
        return read_cached_job(obj)
    except ValueError as error:  # a phase that this version does not know
        log.warning("job not readable", error=str(error))
        return None


def _cron_job_info(obj: JsonObject) -> CronJobInfo | None:
    try:
        return cron_job_of(obj)
    except ValueError as error:  # written past a schema that this version knows
        log.warning("cron job not readable", error=str(error))
        return None


def _array_info(obj: JsonObject) -> ArrayInfo | None:
    try:
        return array_of(obj)
    except ValueError as error:  # a phase that this version does not know
        log.warning("array not readable", error=str(error))
        return None
