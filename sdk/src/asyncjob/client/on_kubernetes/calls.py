"""Requests to the API server, and its errors in the words of a client."""

from collections.abc import Callable
from typing import Final, TypeVar

from asyncjob import errors as kube
from asyncjob.client import errors
from asyncjob.client.steps import JSON, MERGE_PATCH, Answer, Call, Steps, patiently
from asyncjob.errors import ApiError, AsyncJobError
from asyncjob.json_types import Json, JsonObject, as_object, child, items, text
from asyncjob.names import JOBS, collection

T = TypeVar("T")

METADATA_ONLY: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
PAGE: Final = "500"

_NO_SUCH_PATH: Final = "404 page not found"
"""What the API server says of a resource type that it does not have, not of an object."""

_NOT_SERVED: Final = (
    "the API server has no such resource type: are the resource types installed, "
    "and is this the right cluster?"
)

Params = tuple[tuple[str, str], ...]


class ClusterUnavailableError(errors.UnavailableError):
    """The API server gives no usable answer for now."""


def jobs(namespace: str) -> str:
    """Return the path of the jobs of a namespace."""
    return collection(namespace, JOBS)


def patch(path: str, body: JsonObject) -> Call:
    """Return a merge-patch."""
    return Call("PATCH", path, body=body, content_type=MERGE_PATCH)


def read_all(
    path: str,
    params: Params,
    patience: float,
    keep: Callable[[JsonObject], T | None],
    *,
    kind: str = "items",
    accept: str = JSON,
) -> Steps[list[T]]:
    """Return what `keep` makes of each object of a collection, leaving out None.

    It is read in pages, and begun anew where that took too long for the API server. `kind` is what
    an answer calls them.
    """
    found: list[T] = []
    token = ""
    while True:
        more = (("continue", token),) if token else ()
        call = Call("GET", path, (("limit", PAGE), *params, *more), accept=accept)
        try:
            answer: Answer = yield from patiently(call, patience)
        except kube.ExpiredError:
            if not token:
                raise
            found, token = [], ""
            continue
        kept = map(keep, map(as_object, items(answer.object, kind)))
        found.extend(one for one in kept if one is not None)
        token = text(child(answer.object, "metadata"), "continue")
        if not token:
            return found


Make = Callable[[str], AsyncJobError]

_WORDS: Final[tuple[tuple[tuple[type[ApiError], ...], Make], ...]] = (
    ((kube.ForbiddenError,), errors.NotAllowedError),
    ((kube.UnauthorizedError,), errors.UnauthenticatedError),
    ((kube.UnknownOutcomeError, kube.ConflictError, kube.ExpiredError), ClusterUnavailableError),
)


def in_words(
    steps: Steps[T],
    missing: Make = errors.NotFoundError,
    refused: Make = errors.InvalidRequestError,
) -> Steps[T]:
    """Run the operation; what the API server raises leaves it as an error of a client.

    `missing` makes the one for what does not exist, `refused` for what makes no sense to it.
    """
    try:
        return (yield from steps)
    except ApiError as error:
        raise translated(error, missing, refused) from error


def translated(error: ApiError, missing: Make, refused: Make) -> AsyncJobError:
    """Return what an error of the API server means to a client."""
    said = str(error)
    if isinstance(error, kube.NotFoundError):
        return errors.NotFoundError(_NOT_SERVED) if said == _NO_SUCH_PATH else missing(said)
    if isinstance(error, kube.InvalidError | kube.TooLargeError):
        return refused(said)
    if isinstance(error, kube.ThrottledError):
        return ClusterUnavailableError(said, retry_after=error.retry_after)
    kinds = (kind for kinds, kind in _WORDS if isinstance(error, kinds))
    kind = next(kinds, None)
    return error if kind is None else kind(said)


def resource_version(obj: JsonObject) -> Json:
    """Return the object's version."""
    return child(obj, "metadata").get("resourceVersion")
