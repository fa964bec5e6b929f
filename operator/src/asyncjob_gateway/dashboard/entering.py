"""The way into a page: who reads it, which namespace, and what they may do there."""

from dataclasses import dataclass, replace
from datetime import datetime

from starlette.requests import Request

from asyncjob.lifecycle.phases import Phase
from asyncjob_gateway import kinds
from asyncjob_gateway.auth.rights import Right
from asyncjob_gateway.cache.clock import now
from asyncjob_gateway.context import Visit, context_of, enter
from asyncjob_gateway.dashboard.allowed import Allowed, ask
from asyncjob_gateway.dashboard.assets import address
from asyncjob_gateway.dashboard.cookies import form_token, is_by_cookie
from asyncjob_gateway.dashboard.forms import Form, check_origin, one, read_form
from asyncjob_gateway.dashboard.frame import Frame
from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.limits.load import begin


@dataclass(frozen=True, slots=True)
class Room:
    """A visit to a page: what can be read and done, and the frame around the answer."""

    visit: Visit
    frame: Frame

    @property
    def links(self) -> Links:
        """Addresses in this namespace."""
        return self.frame.links

    @property
    def allowed(self) -> Allowed:
        """What the reader may do."""
        return self.frame.allowed

    @property
    def now(self) -> datetime:
        """When the page is made."""
        return self.frame.now


async def look_in(request: Request, *rights: Right) -> Room:
    """Enter a page to read it; raises RefusedError unless the reader has the rights."""
    room = await _enter(request, rights)
    begin(request)
    return room


async def act_in(request: Request, *rights: Right) -> tuple[Room, Form]:
    """Enter by a form; raises RefusedError unless its sender may do it, and it is one of ours.

    The address names the namespace, so that rights are asked for before the form is waited for.
    """
    check_origin(request)
    room = await _enter(request, rights)
    visit = room.visit
    context, who = visit.context, visit.caller.username
    form = await read_form(request, context.bodies, context.settings.max_body, who)
    if one(form, "namespace") not in {"", visit.namespace}:
        raise RefusedError(
            kinds.STALE_FORM, "the form is for another namespace: load its page again"
        )
    begin(request)
    return room, form


async def _enter(request: Request, rights: tuple[Right, ...]) -> Room:
    visit = await enter(request, request.query_params.get("namespace") or None)
    frame = _frame(request, visit, await ask(visit))
    request.state.frame = frame  # for the page that says so, if it is refused, or goes wrong inside
    for right in rights:
        await visit.demand(right)
    return Room(visit, frame)


def bare_frame(request: Request) -> Frame:
    """Return the frame of a page for nobody in particular: sign-in, and what went wrong.

    Whoever has come in already keeps the frame that they had.
    """
    known: Frame | None = getattr(request.state, "frame", None)
    if known:
        return replace(known, did="")
    context = context_of(request)
    return Frame(
        links=Links(),
        namespace=context.default,
        namespaces=(context.default,),
        allowed=Allowed(),
        now=now(),
        form_token=form_token(request),
        assets=address(),
    )


def _frame(request: Request, visit: Visit, allowed: Allowed) -> Frame:
    context, view = visit.context, visit.view
    counts = view.jobs.counts.items()
    dead = sum(count for (_, phase), count in counts if phase is Phase.DEAD_LETTER)
    return Frame(
        links=Links(None if view.name == context.default else view.name),
        namespace=view.name,
        namespaces=tuple(context.views),
        allowed=allowed,
        now=now(),
        caller=visit.caller.username,
        can_sign_out=is_by_cookie(request),
        form_token=form_token(request),
        did=request.query_params.get("did", ""),
        dead_letters=dead if allowed.list_jobs else 0,
        assets=address(),
    )
