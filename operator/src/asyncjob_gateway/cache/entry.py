"""One job in the cache: its summary, and what else it is selected by."""

from dataclasses import dataclass

from asyncjob.json_types import JsonObject, child, text
from asyncjob.names import CRON_JOB_LABEL, PARENT_NAME_ANNOTATION
from asyncjob.rest.choosing import ListPosition, position_of
from asyncjob.rest.job import JobSummary
from asyncjob.rest.reading import summary_of


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
