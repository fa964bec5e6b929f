"""Cookies and forms.

A browser keeps two cookies: the token it signed in with, and the secret of its forms. Both are
HttpOnly, SameSite=Strict, end with the browser, and are sent to the dashboard only: REST never sees
them; on HTTPS they are Secure, and their names say so, so that nobody on an unencrypted connection
can plant one. Forms are accepted only from the dashboard's own pages. Nothing is kept here, so that
any replica serves any request.
"""

import asyncio
import hmac
import secrets
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from asyncjob_gateway import problem_types
from asyncjob_gateway.dashboard.links import PREFIX
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.limits.bodies import ANONYMOUS, BodyReader
from asyncjob_gateway.limits.strict_json import PARSE_INLINE_BYTES
from asyncjob_gateway.urls import split_url

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


TOKEN_FIELD: Final = "form-token"  # noqa: S105  # the name of a field
MAX_FORM_FIELDS: Final = 2000

Form = Mapping[str, list[str]]


async def read_form(
    request: Request, body_reader: BodyReader, max_bytes: int, sender: str = ANONYMOUS
) -> Form:
    """Return the fields of a form of `max_bytes` bytes at most.

    Raises RefusedError where another site may be behind it, or it cannot be read.
    """
    check_origin(request)
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise RefusedError(
            problem_types.UNSUPPORTED_MEDIA_TYPE,
            "a form of the dashboard is sent as a browser does",
        )
    body = await body_reader.read(request, max_bytes, sender)
    try:
        form = (
            _parse_fields(body)
            if len(body) <= PARSE_INLINE_BYTES
            else await asyncio.to_thread(_parse_fields, body)
        )
    except ValueError as error:
        raise RefusedError(problem_types.MALFORMED, "the form cannot be parsed") from error
    if not is_valid_form_token(request, field_value(form, TOKEN_FIELD)):
        detail = "the form is not of this browser or is outdated: load the page again"
        raise RefusedError(problem_types.STALE_FORM, detail)
    return form


def _parse_fields(body: bytes) -> Form:
    text = body.decode()
    return parse_qs(text, keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS, errors="strict")


def check_origin(request: Request) -> None:
    """Raise RefusedError where the browser says that another site makes it send this."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    foreign = site not in {None, "same-origin"}
    if site is None and origin is not None:
        foreign = split_url(origin).netloc != request.headers.get("host")
    if foreign:
        raise RefusedError(
            problem_types.STALE_FORM, "a page of another site is behind this request"
        )


def field_value(form: Form, name: str) -> str:
    """Return a field's value, stripped, empty where there is none."""
    return form.get(name, [""])[0].strip()


def nonempty_fields(form: Form) -> dict[str, str]:
    """Return the fields that have something in them, but for the form's token."""
    found = {name: values[0].replace("\r\n", "\n").strip() for name, values in form.items()}
    return {name: text for name, text in found.items() if text and name != TOKEN_FIELD}
