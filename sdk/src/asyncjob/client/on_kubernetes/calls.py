"""Requests to the API server, and its errors in the words of a client."""

from collections.abc import Callable
from typing import Final, TypeVar

from asyncjob import errors as kube
from asyncjob.client import errors
from asyncjob.client.steps import JSON, MERGE_PATCH, Answer, Call, Patience, Steps
from asyncjob.errors import ApiError, AsyncJobError
from asyncjob.json_types import Json, JsonObject, as_object, child, items
from asyncjob.kube.paging import SECONDS, Paging
from asyncjob.names import JOBS, collection

T = TypeVar("T")

TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"

_NO_SUCH_PATH: Final = "404 page not found"
"""What the API server says of a resource type that it does not have, not of an object."""

_NOT_SERVED: Final = (
    "the API server has no such resource type: are the resource types installed, "
    "and is this the right cluster?"
)

Params = tuple[tuple[str, str], ...]


class ClusterUnavailableError(errors.UnavailableError):
    """The API server gives no usable answer for now."""


def jobs(namespace: str | None) -> str:
    """Return the path of the jobs of a namespace; None: of all."""
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

    It is read in pages of bounded size, and begun anew where that took too long for the API
    server. `kind` is what an answer calls them.
    """
    found: list[T] = []
    paging = Paging()
    while True:
        try:
            page = yield from next_page(paging, path, params, patience, kind=kind, accept=accept)
        except kube.ExpiredError:
            if not paging.begun:
                raise
            found = []
            paging.begin_anew()
            continue
        kept = map(keep, map(as_object, items(page, kind)))
        found.extend(one for one in kept if one is not None)
        if not paging.begun:
            return found


def next_page(
    paging: Paging,
    path: str,
    params: Params,
    patience: float,
    *,
    kind: str = "items",
    accept: str = JSON,
) -> Steps[JsonObject]:
    """Return the next page of a list; one that is too large or too late comes in smaller parts."""
    waiting = Patience(patience)
    while True:
        call = Call(
            "GET",
            path,
            (*paging.params.items(), *params),
            accept=accept,
            within=SECONDS,
            most_bytes=paging.most_bytes,
        )
        try:
            answer: Answer = yield call
        except ApiError as error:
            if not paging.ask_for_less(error):
                yield from waiting.outlast(error)
            continue
        paging.took(answer.object, len(items(answer.object, kind)), answer.size)
        return answer.object


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
