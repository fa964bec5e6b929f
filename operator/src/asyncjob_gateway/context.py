"""What every route works with: who may do what, what is known, and how something is done.

One object, made once and kept by the app. Pages for people, such as a dashboard, use the same:
`enter` says who asks and checks a right; the rest of a `Visit` reads and acts in one namespace.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.requests import Request

from asyncjob.kube import KubeSession
from asyncjob_gateway import kinds
from asyncjob_gateway.auth.access import Access, demand
from asyncjob_gateway.auth.caller import Caller
from asyncjob_gateway.auth.rights import Right
from asyncjob_gateway.auth.tokens import Authenticator
from asyncjob_gateway.cache.namespace import NamespaceView
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.events.streams import Streams
from asyncjob_gateway.limits.bodies import Bodies
from asyncjob_gateway.operations import Operations
from asyncjob_gateway.settings import Settings
from asyncjob_gateway.telemetry.metrics import Metrics
from asyncjob_gateway.telemetry.requests import trace_context


@dataclass(frozen=True, slots=True)
class AppContext:
    """Everything that routes share. `default` is the namespace of requests that name none."""

    settings: Settings
    session: KubeSession
    authenticator: Authenticator
    access: Access
    views: Mapping[str, NamespaceView]
    default: str
    streams: Streams
    metrics: Metrics
    bodies: Bodies
    state: "State"

    def view(self, namespace: str | None) -> NamespaceView:
        """Return what is known of a namespace; raises RefusedError for one that is not served."""
        found = self.views.get(namespace or self.default)
        if found is None:
            raise RefusedError(kinds.NOT_FOUND, f"namespace {namespace} is not served here")
        return found


@dataclass(slots=True)
class State:
    """What changes: whether the gateway is about to stop, and whether it parses a large body."""

    stopping: bool = False
    parsing: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True, slots=True)
class Visit:
    """One request: who asks, about which namespace, in which trace."""

    context: AppContext
    caller: Caller
    view: NamespaceView
    traceparent: str | None

    @property
    def namespace(self) -> str:
        """The namespace that it is about."""
        return self.view.name

    @property
    def operations(self) -> Operations:
        """What can be done in the namespace."""
        context = self.context
        return Operations(
            context.session, self.view, context.metrics, self.demand, self.traceparent
        )

    async def demand(self, right: Right) -> None:
        """Raise RefusedError unless the caller has the right."""
        await demand(self.context.access, self.caller, right, self.namespace)

    async def may(self, right: Right) -> bool:
        """Return whether the caller has the right."""
        return await self.context.access.may(self.caller, right, self.namespace)


def context_of(request: Request) -> AppContext:
    """Return the context of the app that serves the request."""
    context: AppContext = request.app.state.context
    return context


async def identify(request: Request, headers: Headers) -> None:
    """Note who asks, by these headers; raises RefusedError where that cannot be told."""
    authenticator = context_of(request).authenticator
    request.state.caller = await authenticator.identify(headers, address_of(request))


def address_of(request: Request) -> str:
    """Return the address that the request came from: its sender's, or that of a proxy."""
    return request.client.host if request.client else ""


async def enter(request: Request, namespace: str | None, *rights: Right) -> Visit:
    """Return the visit; raises RefusedError unless the caller has the rights there."""
    context = context_of(request)
    trace = trace_context(request.scope)
    made = Visit(context, request.state.caller, context.view(namespace), trace)
    for right in rights:
        await made.demand(right)
    return made
