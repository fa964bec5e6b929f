"""What all routes of the API share.

The caller is authenticated and authorized before the body is read, bodies are checked strictly,
parameters that several routes have, and JSON responses.
"""

from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

import orjson
from fastapi import Depends, Header, Path, Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from starlette.responses import Response

from asyncjob.json_types import Json
from asyncjob.models.base import QUEUE_PATTERN, Key
from asyncjob.names import NAME_PATTERN
from asyncjob.rest.base import RequestModel
from asyncjob.rest.problem import FieldProblem
from asyncjob.rest.strict import schema_mismatches
from asyncjob_gateway import problem_types
from asyncjob_gateway.auth.rights import Right
from asyncjob_gateway.context import RequestContext, app_context, authenticate, request_context
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.limits.bodies import MAX_SINGLE_JOB_BYTES
from asyncjob_gateway.limits.load import acquire_request_slot
from asyncjob_gateway.limits.strict_json import StrictJsonRequest
from asyncjob_gateway.problems import from_validation_error

JSON_MEDIA_TYPE = "application/json"


def json_response(
    model: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an answer that is one object."""
    body = model.model_dump_json(by_alias=True)
    return Response(body, status, headers, JSON_MEDIA_TYPE)


def json_list_response(models: Sequence[BaseModel]) -> Response:
    """Return an answer that is a list of objects."""
    dumped: list[Json] = [model.model_dump(mode="json", by_alias=True) for model in models]
    return Response(orjson.dumps(dumped), 200, None, JSON_MEDIA_TYPE)


JobId = Annotated[
    str,
    Path(
        alias="id", min_length=1, max_length=253, pattern=NAME_PATTERN, description="The job's id."
    ),
]

QueueName = Annotated[
    str,
    Path(
        alias="name", min_length=1, max_length=63, pattern=QUEUE_PATTERN, description="The queue."
    ),
]

CronJobName = Annotated[
    str,
    Path(
        alias="name",
        min_length=1,
        max_length=253,
        pattern=NAME_PATTERN,
        description="The cron job.",
    ),
]

ArrayName = Annotated[
    str,
    Path(
        alias="name",
        min_length=1,
        max_length=253,
        pattern=NAME_PATTERN,
        description="The array.",
    ),
]

IdempotencyKey = Annotated[
    Key | None,
    Header(
        alias="Idempotency-Key",
        description="The same as `idempotencyKey` in the body, for a body that has none.",
    ),
]

LastEventId = Annotated[
    Annotated[str, Field(max_length=64, pattern="^[0-9]+$")] | None,
    Header(
        alias="Last-Event-ID",
        description="Id of the last event that was received, as browsers send it.",
    ),
]


RequestHandler = Callable[[Request], Coroutine[Any, Any, Response]]

Namespace = Annotated[str, Field(min_length=1, max_length=63, pattern=NAME_PATTERN)]

_NAMESPACE_ADAPTER: Final[TypeAdapter[str]] = TypeAdapter(Namespace)


class ApiRoute(APIRoute):
    """Authenticates, asks for the route's rights, reads the body, does what the route does."""

    is_batch: ClassVar[bool] = False
    """Whether a body has many jobs, each of which is looked at by itself."""

    def get_route_handler(self) -> RequestHandler:
        """Return what handles a request."""
        handle = super().get_route_handler()
        rights, lists = rights_of(self.dependant), frozenset(_list_parameters(self.dependant))
        body: Any = self.body_field.field_info.annotation if self.body_field else None

        async def handle_strictly(request: Request) -> Response:
            strict = StrictJsonRequest(request.scope, request.receive)
            await authenticate(strict, strict.headers)
            _check_given_once(strict, lists)
            strict.state.request_context = await request_context(
                strict, _namespace_of(strict), *rights
            )
            if body is not None:
                await self._read_body(strict, body)
            else:
                acquire_request_slot(strict)
            return await handle(strict)

        return handle_strictly

    async def _read_body(self, request: StrictJsonRequest, model: type[BaseModel]) -> None:
        context = app_context(request)
        most = (
            context.settings.max_body
            if self.is_batch
            else min(MAX_SINGLE_JOB_BYTES, context.settings.max_body)
        )
        sender: str = request.state.caller.username
        data = await context.body_reader.read(request, most, sender)
        acquire_request_slot(request, len(data))
        await request.parse(data, context.state.parse_lock)
        if data and not self.is_batch:
            _check_exact_types(model, await request.json())


class BatchRoute(ApiRoute):
    """The same, for bodies with many jobs."""

    is_batch: ClassVar[bool] = True


class NamespaceQuery(RequestModel):
    """The part of a query that all routes have."""

    namespace: Namespace | None = None
    """Namespace of the job; the gateway's own if not given."""


@dataclass(frozen=True, slots=True)
class _AuthorizedRequest:
    """Gives the context of the request; the route has asked for these rights by then."""

    rights: tuple[Right, ...]

    async def __call__(self, request: Request) -> RequestContext:
        found: RequestContext = request.state.request_context
        return found


@dataclass(frozen=True, slots=True)
class _AuthorizedNamespaceRequest:
    """The same, for routes whose query says no more than where."""

    rights: tuple[Right, ...]

    async def __call__(
        self,
        request: Request,
        where: Annotated[NamespaceQuery, Query()],  # noqa: ARG002  # documents it, and refuses others
    ) -> RequestContext:
        found: RequestContext = request.state.request_context
        return found


def authorized(*rights: Right) -> Any:
    """Return the dependency that gives a RequestContext to callers with these rights."""
    return Depends(_AuthorizedNamespaceRequest(rights))


def authorized_with_own_query(*rights: Right) -> Any:
    """Return the same for a route whose own query has the namespace."""
    return Depends(_AuthorizedRequest(rights))


def rights_of(dependant: Dependant) -> tuple[Right, ...]:
    """Return the rights that a route takes; each has to say which."""
    calls = [one.call for one in dependant.dependencies]
    found = [
        call.rights
        for call in calls
        if isinstance(call, _AuthorizedNamespaceRequest | _AuthorizedRequest)
    ]
    if not found:
        raise TypeError(f"{dependant.call}: a route says by `authorized` which rights it takes")
    return tuple(right for rights in found for right in rights)


def _check_exact_types(model: type[BaseModel], data: object) -> None:
    """Raise for data that the model would read as something else, with all that it would refuse."""
    wrong = schema_mismatches(model, data)
    if not wrong:
        return
    try:
        model.model_validate(data)
    except ValidationError as error:
        told = from_validation_error(RequestValidationError(_errors_below(error, "body"))).errors
        known = {one.field for one in told}
        wrong = [*told, *(one for one in wrong if one.field not in known)]
    more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    detail = f"{wrong[0].field}: {wrong[0].detail}{more}"
    raise RefusedError(problem_types.INVALID, detail, errors=wrong)


def _errors_below(error: ValidationError, location: str) -> list[Any]:
    return [{**one, "loc": (location, *one["loc"])} for one in error.errors(include_input=False)]


def _namespace_of(request: Request) -> str | None:
    given = request.query_params.get("namespace")
    if given is None:
        return None
    try:
        return _NAMESPACE_ADAPTER.validate_python(given)
    except ValidationError as error:
        found = [{**one, "loc": ("query", "namespace")} for one in error.errors()]
        raise RequestValidationError(found) from error


def _check_given_once(request: Request, lists: frozenset[str]) -> None:
    """Raise RefusedError for a parameter that is given twice: nobody knows which is meant."""
    given = Counter(name for name, _ in request.query_params.multi_items())
    twice = [name for name, times in given.items() if times > 1 and name not in lists]
    if twice:
        errors = [
            FieldProblem(field=f"query.{name}", detail="It is given more than once")
            for name in twice[:20]
        ]
        raise RefusedError(
            problem_types.INVALID, f"{errors[0].field}: {errors[0].detail}", errors=errors
        )


def _list_parameters(dependant: Dependant) -> Iterator[str]:
    """Yield the parameters that may be given several times."""
    models = [one.field_info.annotation for one in dependant.query_params]
    for model in models:
        if isinstance(model, type) and issubclass(model, BaseModel):
            fields: dict[str, Any] = model.model_json_schema(by_alias=True)["properties"]
            for name, schema in fields.items():
                if any(one.get("type") == "array" for one in schema.get("anyOf", [schema])):
                    yield name
