"""Requests to the API server, paged lists, and its errors translated to those of a client."""

from collections.abc import Callable
from typing import Final, TypeVar

from asyncjob import errors as kube
from asyncjob.client import errors
from asyncjob.client.steps import (
    JSON_TYPE,
    MERGE_PATCH_CONTENT_TYPE,
    Answer,
    Call,
    RetryBudget,
    Steps,
)
from asyncjob.errors import ApiError, AsyncJobError
from asyncjob.json_types import Json, JsonObject, as_object, child, items
from asyncjob.kube.paging import PAGE_TIMEOUT_SECONDS, ListPager
from asyncjob.names import JOBS, collection_path

T = TypeVar("T")

TABLE_CONTENT_TYPE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"

_UNKNOWN_RESOURCE_MESSAGE: Final = "404 page not found"
"""What the API server says of a resource type that it does not have, not of an object."""

_NOT_SERVED: Final = (
    "the API server has no such resource type: are the resource types installed, "
    "and is this the right cluster?"
)

Params = tuple[tuple[str, str], ...]


class ClusterUnavailableError(errors.UnavailableError):
    """The API server gives no usable answer for now."""


def jobs_path(namespace: str | None) -> str:
    """Return the path of the jobs of a namespace; None: of all."""
    return collection_path(namespace, JOBS)


def merge_patch_call(path: str, body: JsonObject) -> Call:
    """Return a merge-patch."""
    return Call("PATCH", path, body=body, content_type=MERGE_PATCH_CONTENT_TYPE)


def list_all(
    path: str,
    params: Params,
    patience: float,
    convert: Callable[[JsonObject], T | None],
    *,
    items_key: str = "items",
    accept: str = JSON_TYPE,
) -> Steps[list[T]]:
    """Return what `convert` makes of each object of a collection, leaving out None.

    It is read in pages of bounded size, and begun anew where that took too long for the API
    server. `items_key` is what an answer calls them.
    """
    found: list[T] = []
    paging = ListPager()
    while True:
        try:
            page = yield from next_page(
                paging, path, params, patience, items_key=items_key, accept=accept
            )
        except kube.ExpiredError:
            if not paging.has_more:
                raise
            found = []
            paging.restart()
            continue
        kept = map(convert, map(as_object, items(page, items_key)))
        found.extend(one for one in kept if one is not None)
        if not paging.has_more:
            return found


def next_page(
    paging: ListPager,
    path: str,
    params: Params,
    patience: float,
    *,
    items_key: str = "items",
    accept: str = JSON_TYPE,
) -> Steps[JsonObject]:
    """Return the next page of a list; one that is too large or too late comes in smaller parts."""
    waiting = RetryBudget(patience)
    while True:
        call = Call(
            "GET",
            path,
            (*paging.params.items(), *params),
            accept=accept,
            timeout_seconds=PAGE_TIMEOUT_SECONDS,
            max_bytes=paging.max_bytes,
        )
        try:
            answer: Answer = yield call
        except ApiError as error:
            if not paging.shrink_after(error):
                yield from waiting.wait_or_raise(error)
            continue
        paging.record_page(answer.object, len(items(answer.object, items_key)), answer.size)
        return answer.object


ErrorFactory = Callable[[str], AsyncJobError]

_CLIENT_ERRORS: Final[tuple[tuple[tuple[type[ApiError], ...], ErrorFactory], ...]] = (
    ((kube.ForbiddenError,), errors.NotAllowedError),
    ((kube.UnauthorizedError,), errors.UnauthenticatedError),
    ((kube.UnknownOutcomeError, kube.ConflictError, kube.ExpiredError), ClusterUnavailableError),
)


def translate_errors(
    steps: Steps[T],
    missing: ErrorFactory = errors.NotFoundError,
    refused: ErrorFactory = errors.InvalidRequestError,
) -> Steps[T]:
    """Run the operation; what the API server raises leaves it as an error of a client.

    `missing` makes the one for what does not exist, `refused` for what makes no sense to it.
    """
    try:
        return (yield from steps)
    except ApiError as error:
        raise to_client_error(error, missing, refused) from error


def to_client_error(error: ApiError, missing: ErrorFactory, refused: ErrorFactory) -> AsyncJobError:
    """Return what an error of the API server means to a client."""
    said = str(error)
    if isinstance(error, kube.ObjectNotFoundError):
        return (
            errors.NotFoundError(_NOT_SERVED)
            if said == _UNKNOWN_RESOURCE_MESSAGE
            else missing(said)
        )
    if isinstance(error, kube.InvalidError | kube.TooLargeError):
        return refused(said)
    if isinstance(error, kube.ThrottledError):
        return ClusterUnavailableError(said, retry_after=error.retry_after)
    kinds = (kind for kinds, kind in _CLIENT_ERRORS if isinstance(error, kinds))
    kind = next(kinds, None)
    return error if kind is None else kind(said)


def resource_version(obj: JsonObject) -> Json:
    """Return the object's version."""
    return child(obj, "metadata").get("resourceVersion")
