"""What a browser keeps of a visit: the token it signed in with, and the secret of its forms.

Both are HttpOnly, SameSite=Strict, end with the browser, and are sent to the dashboard only: REST
never sees them. On HTTPS they are Secure, and their names say so, so that nobody on an unencrypted
connection can plant one. Nothing is kept here, so that any replica serves any request.
"""

import hmac
import secrets
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from asyncjob_gateway.dashboard.links import PREFIX

TOKEN_COOKIE: Final = "asyncjob-token"  # noqa: S105  # the name of a cookie
FORMS_COOKIE: Final = "asyncjob-forms"

MAX_TOKEN_CHARS: Final = 3800
"""Characters of a token that fit into a cookie: browsers drop longer ones without a word."""


def is_encrypted(request: Request) -> bool:
    """Return whether the browser came by HTTPS, be it by the word of a proxy.

    A false word can only make cookies Secure that nobody will send back.
    """
    forwarded = request.headers.get("x-forwarded-proto", "").split(",")[0].strip().lower()
    return "https" in {request.url.scheme, forwarded}


def auth_headers(request: Request) -> Headers:
    """Return the headers that say who asks: those of a proxy first, else the cookie's token."""
    token = request.cookies.get(_cookie_name(request, TOKEN_COOKIE))
    if "authorization" in request.headers or not token:
        return request.headers
    return Headers({"authorization": f"Bearer {token}"})


def is_cookie_authenticated(request: Request) -> bool:
    """Return whether it is the cookie that says who asks."""
    return auth_headers(request) is not request.headers


def set_token_cookie(request: Request, response: Response, token: str) -> None:
    """Have the browser keep the token."""
    _set_cookie(request, response, TOKEN_COOKIE, token)


def clear_cookies(request: Request, response: Response) -> None:
    """Have the browser forget it, and what made its forms good."""
    for name in (TOKEN_COOKIE, FORMS_COOKIE):
        response.delete_cookie(
            _cookie_name(request, name),
            path=PREFIX,
            secure=is_encrypted(request),
            httponly=True,
            samesite="strict",
        )


def form_token(request: Request) -> str:
    """Return what forms of the page have to carry; a new one where the browser has none."""
    known: str | None = request.cookies.get(_cookie_name(request, FORMS_COOKIE))
    token = known or getattr(request.state, "form_token", None) or secrets.token_urlsafe(24)
    request.state.form_token = token
    return str(token)


def set_form_token_cookie(request: Request, response: Response) -> None:
    """Have the browser keep the token of its forms, if a page has given it a new one."""
    given = getattr(request.state, "form_token", None)
    if given and given != request.cookies.get(_cookie_name(request, FORMS_COOKIE)):
        _set_cookie(request, response, FORMS_COOKIE, given)


def is_valid_form_token(request: Request, given: str) -> bool:
    """Return whether a form carries what the browser was given."""
    known = request.cookies.get(_cookie_name(request, FORMS_COOKIE), "")
    return bool(known) and hmac.compare_digest(known.encode(), given.encode())


def _cookie_name(request: Request, name: str) -> str:
    return f"__Secure-{name}" if is_encrypted(request) else name


def _set_cookie(request: Request, response: Response, name: str, value: str) -> None:
    response.set_cookie(
        _cookie_name(request, name),
        value,
        path=PREFIX,
        secure=is_encrypted(request),
        httponly=True,
        samesite="strict",
    )
