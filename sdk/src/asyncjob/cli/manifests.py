"""What a document asks for: a Submission, a manifest of an AsyncJob, or several. Pure."""

from collections.abc import Iterator
from typing import Final

from asyncjob.cli.documents import Document, DocumentError
from asyncjob.json_types import Json, JsonObject, as_object, child, items, text
from asyncjob.names import API_VERSION, JOB_KIND

_ALLOWED_METADATA: Final = frozenset({"name", "labels", "namespace"})
_APPLY_HINT: Final = "kubectl apply -f takes it"


def job_documents(document: Document, namespace: str | None) -> Iterator[Document]:
    """Yield the jobs of a document as fields of a Submission, by the names of JSON.

    `namespace` is the one that was asked for, if any. Raises DocumentError.
    """
    value = document.value
    if isinstance(value, list):
        yield from _each_job(document.location, value, namespace)
    elif isinstance(value, dict) and "kind" in value:
        yield from _jobs_of_manifest(document.location, value, namespace)
    elif isinstance(value, dict):
        yield document
    else:
        raise DocumentError(
            f"{document.location}: a job is an object with a type, or a manifest of an {JOB_KIND}; "
            "for a payload give its TYPE first"
        )


def _each_job(location: str, values: list[Json], namespace: str | None) -> Iterator[Document]:
    for number, one in enumerate(values, start=1):
        yield from job_documents(Document(f"{location}[{number}]", one), namespace)


def _jobs_of_manifest(
    location: str, value: JsonObject, namespace: str | None
) -> Iterator[Document]:
    kind = value["kind"]
    if kind in {"List", f"{JOB_KIND}List"}:
        yield from _each_job(location, list(items(value, "items")), namespace)
    elif kind == JOB_KIND and value.get("apiVersion") == API_VERSION:
        yield Document(location, _submission_fields(location, value, namespace))
    else:
        what = f"{value.get('apiVersion')} {kind}"
        raise DocumentError(f"{location}: {what} is no {API_VERSION} {JOB_KIND}; {_APPLY_HINT}")


def _submission_fields(location: str, value: JsonObject, namespace: str | None) -> JsonObject:
    metadata = child(value, "metadata")
    beyond = sorted(set(metadata) - _ALLOWED_METADATA)
    if beyond:
        raise DocumentError(f"{location}: metadata.{beyond[0]} cannot be submitted; {_APPLY_HINT}")
    meant = text(metadata, "namespace")
    if meant and meant != namespace:
        raise DocumentError(f"{location}: metadata.namespace is {meant}; say so: -n {meant}")
    named = {key: metadata[key] for key in ("name", "labels") if key in metadata}
    return {**as_object(value.get("spec")), **named}
