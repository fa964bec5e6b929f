"""What a page works with.

The reader's request context, their permissions, and the frame around the page. Rights are checked
here, and forms are read.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from starlette.requests import Request

from asyncjob.lifecycle.phases import Phase
from asyncjob_gateway import problem_types
from asyncjob_gateway.auth.rights import Right
from asyncjob_gateway.clock import now
from asyncjob_gateway.context import RequestContext, app_context, request_context
from asyncjob_gateway.dashboard.layout import Frame
from asyncjob_gateway.dashboard.links import Links, assets_url
from asyncjob_gateway.dashboard.permissions import Permissions, check_permissions
from asyncjob_gateway.dashboard.security import (
    Form,
    check_origin,
    field_value,
    form_token,
    is_cookie_authenticated,
    read_form,
)
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.limits.load import acquire_request_slot


@dataclass(frozen=True, slots=True)
class PageContext:
    """A request for a page: what can be read and done, and the frame around the answer."""

    request_context: RequestContext
    frame: Frame

    @property
    def links(self) -> Links:
        """Addresses in this namespace."""
        return self.frame.links

    @property
    def allowed(self) -> Permissions:
        """What the reader may do."""
        return self.frame.allowed

    @property
    def now(self) -> datetime:
        """When the page is made."""
        return self.frame.now


async def page_context(request: Request, *rights: Right) -> PageContext:
    """Enter a page to read it; raises RefusedError unless the reader has the rights."""
    ctx = await _make_context(request, rights)
    acquire_request_slot(request)
    return ctx


async def form_context(request: Request, *rights: Right) -> tuple[PageContext, Form]:
    """Enter by a form; raises RefusedError unless its sender may do it, and it is one of ours.

    The address names the namespace, so that rights are asked for before the form is waited for.
    """
    check_origin(request)
    ctx = await _make_context(request, rights)
    found = ctx.request_context
    context, who = found.app, found.caller.username
    form = await read_form(request, context.body_reader, context.settings.max_body, who)
    if field_value(form, "namespace") not in {"", found.namespace}:
        raise RefusedError(
            problem_types.STALE_FORM, "the form is for another namespace: load its page again"
        )
    acquire_request_slot(request, sum(len(text) for texts in form.values() for text in texts))
    return ctx, form


async def _make_context(request: Request, rights: tuple[Right, ...]) -> PageContext:
    ctx = await request_context(request, request.query_params.get("namespace") or None)
    frame = _frame_of(request, ctx, await check_permissions(ctx))
    request.state.frame = frame  # for the page that says so, if it is refused, or goes wrong inside
    for right in rights:
        await ctx.require(right)
    return PageContext(ctx, frame)


def anonymous_frame(request: Request) -> Frame:
    """Return the frame of a page for nobody in particular: sign-in, and what went wrong.

    A caller who is signed in already keeps the frame that they had.
    """
    known: Frame | None = getattr(request.state, "frame", None)
    if known:
        return replace(known, did="")
    context = app_context(request)
    return Frame(
        links=Links(),
        namespace=context.default_namespace,
        namespaces=(context.default_namespace,),
        allowed=Permissions(),
        now=now(),
        form_token=form_token(request),
        assets=assets_url(),
    )


def _frame_of(request: Request, ctx: RequestContext, allowed: Permissions) -> Frame:
    context, view = ctx.app, ctx.cache
    counts = view.jobs.counts.items()
    dead = sum(count for (_, phase), count in counts if phase is Phase.DEAD_LETTER)
    return Frame(
        links=Links(None if view.name == context.default_namespace else view.name),
        namespace=view.name,
        namespaces=tuple(context.caches),
        allowed=allowed,
        now=now(),
        caller=ctx.caller.username,
        can_sign_out=is_cookie_authenticated(request),
        form_token=form_token(request),
        did=request.query_params.get("did", ""),
        dead_letters=dead if allowed.list_jobs else 0,
        assets=assets_url(),
    )
