"""How each route of the API is entered: who asks is known before the body is read, and strictly."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.routing import APIRoute
from pydantic import Field
from starlette.responses import Response

from asyncjob.models.base import NAME_PATTERN
from asyncjob.rest.wire import Ask
from asyncjob_gateway.auth.rights import Right
from asyncjob_gateway.context import Visit, context_of, enter
from asyncjob_gateway.limits.strict_json import StrictRequest

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

Namespace = Annotated[str, Field(min_length=1, max_length=63, pattern=NAME_PATTERN)]


class ApiRoute(APIRoute):
    """Authenticates, then reads the body, then does what the route does."""

    def get_route_handler(self) -> Handler:
        """Return what handles a request."""
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            strict = StrictRequest(request.scope, request.receive)
            context = context_of(request)
            strict.state.caller = await context.authenticator.identify(strict.headers)
            await strict.read(context.settings.max_body)
            return await handle(strict)

        return handle_strictly


class Where(Ask):
    """The part of a query that all routes have."""

    namespace: Namespace | None = None
    """Namespace of the job; the gateway's own if not given."""


def visiting(*rights: Right) -> Any:
    """Return the dependency that gives a Visit to callers with these rights."""

    async def come(request: Request, where: Annotated[Where, Query()]) -> Visit:
        return await enter(request, where.namespace, *rights)

    return Depends(come)
