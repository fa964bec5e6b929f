"""What a job takes its payload from, and the right that its author needs for that.

The API server asks for the right of who creates the job, which is the gateway here: it vouches for
its caller, whose right it has asked for itself.
"""

from collections.abc import Iterator
from typing import Final

from asyncjob.json_types import JsonObject, child, text
from asyncjob.models.spec import PayloadSource
from asyncjob.names import CRON_JOB_KIND
from asyncjob_gateway.auth.rights import Right, read_source

_SOURCE_RESOURCES: Final = {"secretKeyRef": "secrets", "configMapKeyRef": "configmaps"}


def rights_for_source(source: PayloadSource | None) -> Iterator[Right]:
    """Yield the rights that a submission with this source takes."""
    if source:
        yield from _source_rights(source.model_dump(by_alias=True, exclude_none=True))


def rights_for_object(obj: JsonObject) -> Iterator[Right]:
    """Yield the rights that running an AsyncJob, or the jobs of an AsyncCronJob, takes."""
    spec = child(obj, "spec")
    if text(obj, "kind") == CRON_JOB_KIND:
        spec = child(child(spec, "jobTemplate"), "spec")
    yield from _source_rights(child(spec, "payloadFrom"))


def _source_rights(source: JsonObject) -> Iterator[Right]:
    for field, resource in _SOURCE_RESOURCES.items():
        if field in source:
            yield read_source(resource, text(child(source, field), "name"))
