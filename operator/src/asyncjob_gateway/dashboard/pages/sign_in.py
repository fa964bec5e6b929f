"""Signing in with a token of the cluster, and signing out."""

from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter, Request
from starlette.datastructures import Headers
from starlette.responses import Response

from asyncjob_gateway.context import address_of, app_context
from asyncjob_gateway.dashboard.layout import render_page, see_other
from asyncjob_gateway.dashboard.links import PREFIX, safe_redirect_target
from asyncjob_gateway.dashboard.page_context import anonymous_frame
from asyncjob_gateway.dashboard.page_route import PublicPageRoute
from asyncjob_gateway.dashboard.security import (
    MAX_TOKEN_CHARS,
    clear_cookies,
    field_value,
    is_encrypted,
    read_form,
    set_token_cookie,
)
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.settings import is_loopback
from asyncjob_gateway.urls import split_url


@dataclass(frozen=True, slots=True)
class SignInPage:
    """Where to go on, what was wrong, and whether the token would cross a network readable."""

    target: str
    error: str = ""
    in_the_clear: bool = False


router = APIRouter(prefix=PREFIX, route_class=PublicPageRoute)
ROUTERS = (router,)

MAX_SIGN_IN_BYTES: Final = 64 * 1024
"""Bytes of a form that anyone may send."""


@router.get("/sign-in")
async def show_sign_in(request: Request) -> Response:
    """Show the form, unless everyone is let in anyway."""
    target = safe_redirect_target(request.query_params.get("next", ""))
    if app_context(request).settings.open:
        return see_other(target)
    return _sign_in_page(request, target)


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Have the cluster check the token, and the browser keep it."""
    form = await read_form(request, app_context(request).body_reader, MAX_SIGN_IN_BYTES)
    target, token = (
        safe_redirect_target(field_value(form, "next")),
        "".join(field_value(form, "token").split()),
    )
    if len(token) > MAX_TOKEN_CHARS:
        return _sign_in_page(
            request, target, f"it has more than {MAX_TOKEN_CHARS} characters, which no cookie has"
        )
    try:
        caller = Headers({"authorization": f"Bearer {token}"})
        await app_context(request).authenticator.authenticate(caller, address_of(request))
    except RefusedError as error:
        return _sign_in_page(request, target, error.detail, error.kind.status)
    response = see_other(target)
    set_token_cookie(request, response, token)
    return response


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """Have the browser forget the token."""
    await read_form(request, app_context(request).body_reader, MAX_SIGN_IN_BYTES)
    response = see_other(f"{PREFIX}/sign-in")
    clear_cookies(request, response)
    return response


def _sign_in_page(request: Request, target: str, error: str = "", status: int = 0) -> Response:
    host = split_url(f"//{request.headers.get('host', '')}").hostname or ""
    view = SignInPage(
        target=target, error=error, in_the_clear=not is_encrypted(request) and not is_loopback(host)
    )
    return render_page(
        "sign_in.html", anonymous_frame(request), view, status or (422 if error else 200)
    )
