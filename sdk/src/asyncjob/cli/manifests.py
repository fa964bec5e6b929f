"""What a document asks for: a Submission, a manifest of an AsyncJob, or several. Pure."""

from collections.abc import Iterator
from typing import Final

from asyncjob.cli.documents import Document, DocumentError
from asyncjob.json_types import Json, JsonObject, as_object, child, items, text
from asyncjob.names import API_VERSION, JOB_KIND

_METADATA: Final = frozenset({"name", "labels", "namespace"})
_APPLY: Final = "kubectl apply -f takes it"


def jobs_in(document: Document, namespace: str | None) -> Iterator[Document]:
    """Yield the jobs of a document as fields of a Submission, by the names of JSON.

    `namespace` is the one that was asked for, if any. Raises DocumentError.
    """
    value = document.value
    if isinstance(value, list):
        yield from _several(document.where, value, namespace)
    elif isinstance(value, dict) and "kind" in value:
        yield from _of_kind(document.where, value, namespace)
    elif isinstance(value, dict):
        yield document
    else:
        raise DocumentError(
            f"{document.where}: a job is an object with a type, or a manifest of an {JOB_KIND}; "
            "for a payload give its TYPE first"
        )


def _several(where: str, values: list[Json], namespace: str | None) -> Iterator[Document]:
    for number, one in enumerate(values, start=1):
        yield from jobs_in(Document(f"{where}[{number}]", one), namespace)


def _of_kind(where: str, value: JsonObject, namespace: str | None) -> Iterator[Document]:
    kind = value["kind"]
    if kind in {"List", f"{JOB_KIND}List"}:
        yield from _several(where, list(items(value, "items")), namespace)
    elif kind == JOB_KIND and value.get("apiVersion") == API_VERSION:
        yield Document(where, _fields(where, value, namespace))
    else:
        what = f"{value.get('apiVersion')} {kind}"
        raise DocumentError(f"{where}: {what} is no {API_VERSION} {JOB_KIND}; {_APPLY}")


def _fields(where: str, value: JsonObject, namespace: str | None) -> JsonObject:
    metadata = child(value, "metadata")
    beyond = sorted(set(metadata) - _METADATA)
    if beyond:
        raise DocumentError(f"{where}: metadata.{beyond[0]} cannot be submitted; {_APPLY}")
    meant = text(metadata, "namespace")
    if meant and meant != namespace:
        raise DocumentError(f"{where}: metadata.namespace is {meant}; say so: -n {meant}")
    named = {key: metadata[key] for key in ("name", "labels") if key in metadata}
    return {**as_object(value.get("spec")), **named}
