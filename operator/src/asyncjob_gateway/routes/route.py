"""How each route of the API is entered: who asks, and whether they may, is known before the body.

A body is waited for, read and parsed only for those who may do what it asks for.
"""

from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from fastapi import Depends, Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from starlette.responses import Response

from asyncjob.models.base import NAME_PATTERN
from asyncjob.rest.exact import inexact
from asyncjob.rest.problem import FieldProblem
from asyncjob.rest.wire import Ask
from asyncjob_gateway import kinds
from asyncjob_gateway.auth.rights import Right
from asyncjob_gateway.context import Visit, context_of, enter, identify
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.limits.bodies import ONE_JOB
from asyncjob_gateway.limits.load import begin
from asyncjob_gateway.limits.strict_json import StrictRequest
from asyncjob_gateway.problems.translate import from_validation

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

Namespace = Annotated[str, Field(min_length=1, max_length=63, pattern=NAME_PATTERN)]

_NAMESPACE: Final[TypeAdapter[str]] = TypeAdapter(Namespace)


class ApiRoute(APIRoute):
    """Authenticates, asks for the route's rights, reads the body, does what the route does."""

    has_many: ClassVar[bool] = False
    """Whether a body has many jobs, each of which is looked at by itself."""

    def get_route_handler(self) -> Handler:
        """Return what handles a request."""
        handle = super().get_route_handler()
        rights, lists = rights_of(self.dependant), frozenset(_lists(self.dependant))
        body: Any = self.body_field.field_info.annotation if self.body_field else None

        async def handle_strictly(request: Request) -> Response:
            strict = StrictRequest(request.scope, request.receive)
            await identify(strict, strict.headers)
            _check_given_once(strict, lists)
            strict.state.visit = await enter(strict, _namespace(strict), *rights)
            if body is not None:
                await self._read(strict, body)
            begin(strict)
            return await handle(strict)

        return handle_strictly

    async def _read(self, request: StrictRequest, model: type[BaseModel]) -> None:
        context = context_of(request)
        most = (
            context.settings.max_body if self.has_many else min(ONE_JOB, context.settings.max_body)
        )
        sender: str = request.state.caller.username
        data = await context.bodies.receive(request, most, sender)
        await request.parse(data, context.state.parsing)
        if data and not self.has_many:
            _check_exact(model, await request.json())


class BatchRoute(ApiRoute):
    """The same, for bodies with many jobs."""

    has_many: ClassVar[bool] = True


class Where(Ask):
    """The part of a query that all routes have."""

    namespace: Namespace | None = None
    """Namespace of the job; the gateway's own if not given."""


@dataclass(frozen=True, slots=True)
class _Admitted:
    """Gives the visit of a caller who has these rights; the route has asked for them by then."""

    rights: tuple[Right, ...]

    async def __call__(self, request: Request) -> Visit:
        visit: Visit = request.state.visit
        return visit


@dataclass(frozen=True, slots=True)
class _Visiting:
    """The same, for routes whose query says no more than where."""

    rights: tuple[Right, ...]

    async def __call__(self, request: Request, where: Annotated[Where, Query()]) -> Visit:  # noqa: ARG002  # documents it, and refuses others
        visit: Visit = request.state.visit
        return visit


def visiting(*rights: Right) -> Any:
    """Return the dependency that gives a Visit to callers with these rights."""
    return Depends(_Visiting(rights))


def admitting(*rights: Right) -> Any:
    """Return the same for a route whose own query has the namespace."""
    return Depends(_Admitted(rights))


def rights_of(dependant: Dependant) -> tuple[Right, ...]:
    """Return the rights that a route takes; each has to say which."""
    calls = [one.call for one in dependant.dependencies]
    found = [call.rights for call in calls if isinstance(call, _Visiting | _Admitted)]
    if not found:
        raise TypeError(f"{dependant.call}: a route says by `visiting` which rights it takes")
    return tuple(right for rights in found for right in rights)


def _check_exact(model: type[BaseModel], data: object) -> None:
    """Raise for data that the model would read as something else, with all that it would refuse."""
    wrong = inexact(model, data)
    if not wrong:
        return
    try:
        model.model_validate(data)
    except ValidationError as error:
        told = from_validation(RequestValidationError(_below(error, "body"))).errors
        known = {one.field for one in told}
        wrong = [*told, *(one for one in wrong if one.field not in known)]
    more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    detail = f"{wrong[0].field}: {wrong[0].detail}{more}"
    raise RefusedError(kinds.INVALID, detail, errors=wrong)


def _below(error: ValidationError, where: str) -> list[Any]:
    return [{**one, "loc": (where, *one["loc"])} for one in error.errors(include_input=False)]


def _namespace(request: Request) -> str | None:
    given = request.query_params.get("namespace")
    if given is None:
        return None
    try:
        return _NAMESPACE.validate_python(given)
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
        raise RefusedError(kinds.INVALID, f"{errors[0].field}: {errors[0].detail}", errors=errors)


def _lists(dependant: Dependant) -> Iterator[str]:
    """Yield the parameters that may be given several times."""
    models = [one.field_info.annotation for one in dependant.query_params]
    for model in models:
        if isinstance(model, type) and issubclass(model, BaseModel):
            fields: dict[str, Any] = model.model_json_schema(by_alias=True)["properties"]
            for name, schema in fields.items():
                if any(one.get("type") == "array" for one in schema.get("anyOf", [schema])):
                    yield name
