"""What every route works with: who may do what, what is known, and how something is done.

One object, made once and kept by the app. Pages for people, such as a dashboard, use the same:
`request_context` says who asks and checks a right; the `RequestContext` that it returns reads and
acts in one namespace.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.requests import Request

from asyncjob.kube import KubeSession
from asyncjob_gateway import problem_types
from asyncjob_gateway.auth.authentication import Authenticator, Caller
from asyncjob_gateway.auth.authorization import Authorizer, require
from asyncjob_gateway.auth.rights import Right
from asyncjob_gateway.cache.namespace import NamespaceCache
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.limits.bodies import BodyReader
from asyncjob_gateway.operations import Operations
from asyncjob_gateway.settings import GatewaySettings
from asyncjob_gateway.streams import StreamLimiter
from asyncjob_gateway.telemetry import GatewayMetrics, trace_context


@dataclass(frozen=True, slots=True)
class AppContext:
    """Everything that routes share.

    `default_namespace` is the namespace of requests that name none.
    """

    settings: GatewaySettings
    session: KubeSession
    authenticator: Authenticator
    authorizer: Authorizer
    caches: Mapping[str, NamespaceCache]
    default_namespace: str
    streams: StreamLimiter
    metrics: GatewayMetrics
    body_reader: BodyReader
    state: "AppState"

    def cache(self, namespace: str | None) -> NamespaceCache:
        """Return what is known of a namespace; raises RefusedError for one that is not served."""
        found = self.caches.get(namespace or self.default_namespace)
        if found is None:
            raise RefusedError(problem_types.NOT_FOUND, f"namespace {namespace} is not served here")
        return found


@dataclass(slots=True)
class AppState:
    """What changes: whether the gateway is about to stop, and whether it parses a large body."""

    stopping: bool = False
    parse_lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One request: who asks, about which namespace, in which trace."""

    app: AppContext
    caller: Caller
    cache: NamespaceCache
    traceparent: str | None

    @property
    def namespace(self) -> str:
        """The namespace that it is about."""
        return self.cache.name

    @property
    def operations(self) -> Operations:
        """What can be done in the namespace."""
        context = self.app
        return Operations(
            context.session, self.cache, context.metrics, self.require, self.traceparent
        )

    async def require(self, right: Right) -> None:
        """Raise RefusedError unless the caller has the right."""
        await require(self.app.authorizer, self.caller, right, self.namespace)

    async def is_allowed(self, right: Right) -> bool:
        """Return whether the caller has the right."""
        return await self.app.authorizer.is_allowed(self.caller, right, self.namespace)


def app_context(request: Request) -> AppContext:
    """Return the context of the app that serves the request."""
    context: AppContext = request.app.state.context
    return context


async def authenticate(request: Request, headers: Headers) -> None:
    """Note who asks, by these headers; raises RefusedError where that cannot be told."""
    authenticator = app_context(request).authenticator
    request.state.caller = await authenticator.authenticate(headers, address_of(request))


def address_of(request: Request) -> str:
    """Return the address that the request came from: its sender's, or that of a proxy."""
    return request.client.host if request.client else ""


async def request_context(
    request: Request, namespace: str | None, *rights: Right
) -> RequestContext:
    """Return a request's context; raises RefusedError unless the caller has the rights there."""
    context = app_context(request)
    trace = trace_context(request.scope)
    made = RequestContext(context, request.state.caller, context.cache(namespace), trace)
    for right in rights:
        await made.require(right)
    return made
