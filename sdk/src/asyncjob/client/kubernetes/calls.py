"""The API server as a client asks it: retries, paged lists, its errors as those of a client."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from asyncjob import errors as kube
from asyncjob.client import errors
from asyncjob.client.connection import (
    JSON_PATCH_CONTENT_TYPE,
    JSON_TYPE,
    MERGE_PATCH_CONTENT_TYPE,
    Answer,
    Call,
    Connection,
    RetryBudget,
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

ParamPairs = tuple[tuple[str, str], ...]


class ClusterUnavailableError(errors.UnavailableError):
    """The API server gives no usable answer for now."""


def jobs_path(namespace: str | None) -> str:
    """Return the path of the jobs of a namespace; None: of all."""
    return collection_path(namespace, JOBS)


@dataclass(frozen=True, slots=True)
class KubernetesCalls:
    """The API server as one client asks it. Raises the SDK's errors of the API server."""

    connection: Connection

    patience: float
    """How many seconds it is waited for where it is away, at each request."""

    timeout_seconds: float | None = None
    """How long an answer may take; None: as long as the connection lets it."""

    async def send_once(self, call: Call) -> Answer:
        """Send a request that may not be repeated."""
        if self.timeout_seconds is not None:
            call = replace(call, timeout_seconds=self.timeout_seconds)
        return await self.connection.send(call)

    async def send(self, call: Call) -> JsonObject:
        """Send a request that may be repeated until it is answered."""
        waiting = RetryBudget(self.connection, self.patience)
        while True:
            try:
                return (await self.send_once(call)).object
            except AsyncJobError as error:
                await waiting.wait_or_raise(error)

    async def get(
        self, path: str, params: ParamPairs = (), *, accept: str = JSON_TYPE
    ) -> JsonObject:
        """Read an object, or one page."""
        return await self.send(Call("GET", path, params, accept=accept))

    async def merge_patch(self, path: str, body: JsonObject) -> JsonObject:
        """Merge into an object."""
        call = Call("PATCH", path, body=body, content_type=MERGE_PATCH_CONTENT_TYPE)
        return await self.send(call)

    async def json_patch(self, path: str, operations: Sequence[JsonObject]) -> JsonObject:
        """Apply a JSON Patch, which may be repeated."""
        call = Call("PATCH", path, body=[*operations], content_type=JSON_PATCH_CONTENT_TYPE)
        return await self.send(call)

    async def list_all(
        self,
        path: str,
        params: ParamPairs,
        convert: Callable[[JsonObject], T | None],
        *,
        items_key: str = "items",
        accept: str = JSON_TYPE,
        reduce: Callable[[list[T]], list[T]] = lambda found: found,
    ) -> list[T]:
        """Return what `convert` makes of each object of a collection, leaving out None.

        It is read in pages of bounded size, and started again where that took too long for the API
        server. `items_key` is what an answer calls them. `reduce` returns, after each page, what
        of all that was found is still needed.
        """
        found: list[T] = []
        paging = ListPager()
        while True:
            try:
                page = await self.next_page(
                    paging, path, params, items_key=items_key, accept=accept
                )
            except kube.ExpiredError:
                if not paging.has_more:
                    raise
                found = []
                paging.restart()
                continue
            kept = map(convert, map(as_object, items(page, items_key)))
            found.extend(one for one in kept if one is not None)
            found = reduce(found)
            if not paging.has_more:
                return found

    async def next_page(
        self,
        paging: ListPager,
        path: str,
        params: ParamPairs = (),
        *,
        items_key: str = "items",
        accept: str = JSON_TYPE,
    ) -> JsonObject:
        """Return the next page; one that is too large or too late comes in smaller parts."""
        waiting = RetryBudget(self.connection, self.patience)
        while True:
            call = Call(
                "GET",
                path,
                tuple(paging.request_params(params).items()),
                accept=accept,
                timeout_seconds=PAGE_TIMEOUT_SECONDS,
                max_bytes=paging.max_bytes,
            )
            try:
                answer = await self.send_once(call)
            except ApiError as error:
                if not paging.shrink_after(error):
                    await waiting.wait_or_raise(error)
                continue
            paging.record_page(answer.object, len(items(answer.object, items_key)), answer.size)
            return answer.object


ErrorFactory = Callable[[str], AsyncJobError]

_CLIENT_ERRORS: Final[tuple[tuple[tuple[type[ApiError], ...], ErrorFactory], ...]] = (
    ((kube.ForbiddenError,), errors.NotAllowedError),
    ((kube.UnauthorizedError,), errors.UnauthenticatedError),
    ((kube.UnknownOutcomeError, kube.ConflictError, kube.ExpiredError), ClusterUnavailableError),
)


@contextmanager
def translate_errors(
    missing: ErrorFactory = errors.NotFoundError,
    refused: ErrorFactory = errors.InvalidRequestError,
) -> Iterator[None]:
    """Let what the API server raises inside leave as an error of a client.

    `missing` makes the one for what does not exist, `refused` for what makes no sense to it.
    """
    try:
        yield
    except ApiError as error:
        raise to_client_error(error, missing, refused) from error


def to_client_error(error: ApiError, missing: ErrorFactory, refused: ErrorFactory) -> AsyncJobError:
    """Return what an error of the API server means to a client."""
    message = str(error)
    if isinstance(error, kube.ObjectNotFoundError):
        return (
            errors.NotFoundError(_NOT_SERVED)
            if message == _UNKNOWN_RESOURCE_MESSAGE
            else missing(message)
        )
    if isinstance(error, kube.InvalidError | kube.TooLargeError):
        return refused(message)
    if isinstance(error, kube.ThrottledError):
        return ClusterUnavailableError(message, retry_after=error.retry_after)
    kinds = (kind for kinds, kind in _CLIENT_ERRORS if isinstance(error, kinds))
    kind = next(kinds, None)
    return error if kind is None else kind(message)


def resource_version(obj: JsonObject) -> Json:
    """Return the object's version."""
    return child(obj, "metadata").get("resourceVersion")
