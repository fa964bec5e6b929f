"""Signing in with a token of the cluster, and out again."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.datastructures import Headers
from starlette.responses import Response

from asyncjob_gateway.context import address_of, context_of
from asyncjob_gateway.dashboard.cookies import LONGEST, forget_token, is_encrypted, keep_token
from asyncjob_gateway.dashboard.entering import bare_frame
from asyncjob_gateway.dashboard.forms import one, read_form
from asyncjob_gateway.dashboard.links import PREFIX, own_page
from asyncjob_gateway.dashboard.page import page, see
from asyncjob_gateway.dashboard.route import OpenRoute
from asyncjob_gateway.dashboard.views.signing import SignIn
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.limits.addresses import split
from asyncjob_gateway.settings import is_loopback

router = APIRouter(prefix=PREFIX, route_class=OpenRoute)
ROUTERS = (router,)

MOST: Final = 64 * 1024
"""Bytes of a form that anyone may send."""


@router.get("/sign-in")
async def form(request: Request) -> Response:
    """Show the form, unless everyone is let in anyway."""
    target = own_page(request.query_params.get("next", ""))
    if context_of(request).settings.open:
        return see(target)
    return _form(request, target)


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Have the cluster check the token, and the browser keep it."""
    form = await read_form(request, context_of(request).bodies, MOST)
    target, token = own_page(one(form, "next")), "".join(one(form, "token").split())
    if len(token) > LONGEST:
        return _form(request, target, f"it has more than {LONGEST} characters, which no cookie has")
    try:
        caller = Headers({"authorization": f"Bearer {token}"})
        await context_of(request).authenticator.identify(caller, address_of(request))
    except RefusedError as error:
        return _form(request, target, error.detail, error.kind.status)
    response = see(target)
    keep_token(request, response, token)
    return response


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """Have the browser forget the token."""
    await read_form(request, context_of(request).bodies, MOST)
    response = see(f"{PREFIX}/sign-in")
    forget_token(request, response)
    return response


def _form(request: Request, target: str, error: str = "", status: int = 0) -> Response:
    host = split(f"//{request.headers.get('host', '')}").hostname or ""
    view = SignIn(
        target=target, error=error, in_the_clear=not is_encrypted(request) and not is_loopback(host)
    )
    return page("sign_in.html", bare_frame(request), view, status or (422 if error else 200))
