"""One job in the cache: its summary, and what else it is selected by."""

from dataclasses import dataclass

from asyncjob.json_types import JsonObject, child, text
from asyncjob.names import CRON_JOB_LABEL, PARENT_NAME_ANNOTATION
from asyncjob.rest.choosing import Place, place
from asyncjob.rest.job import JobSummary
from asyncjob.rest.reading import summary_of


@dataclass(frozen=True, slots=True)
class Entry:
    """A job; `version` grows with every change of it, `text` is what free text is looked for in."""

    place: Place
    version: int
    summary: JobSummary
    parent: str
    rerun_of: str
    cron_job: str
    text: str


def entry_of(obj: JsonObject) -> Entry:
    """Read a job; raises ValueError on a phase that this version does not know."""
    meta, summary = child(obj, "metadata"), summary_of(obj)
    error = summary.error
    words = (
        *(summary.id, summary.type, summary.message or ""),
        *((error.type, error.message) if error else ()),
    )
    return Entry(
        place=place(summary),
        version=version_of(text(meta, "resourceVersion")),
        summary=summary,
        parent=text(child(meta, "annotations"), PARENT_NAME_ANNOTATION),
        rerun_of=text(child(child(obj, "spec"), "rerunOf"), "name"),
        cron_job=text(child(meta, "labels"), CRON_JOB_LABEL),
        text="\n".join(words).casefold(),
    )


def version_of(resource_version: str) -> int:
    """Return a resourceVersion as a number, which the API server promises that it is."""
    return int(resource_version) if resource_version.isdecimal() else 0
