"""Forms as browsers send them, and only those of our own pages."""

import asyncio
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qs

from starlette.requests import Request

from asyncjob_gateway import kinds
from asyncjob_gateway.dashboard.cookies import is_valid_form_token
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.limits.addresses import split_url
from asyncjob_gateway.limits.bodies import ANONYMOUS, BodyReader
from asyncjob_gateway.limits.strict_json import PARSE_INLINE_BYTES

TOKEN_FIELD: Final = "form-token"  # noqa: S105  # the name of a field
MAX_FORM_FIELDS: Final = 2000

Form = Mapping[str, list[str]]


async def read_form(
    request: Request, body_reader: BodyReader, max_bytes: int, sender: str = ANONYMOUS
) -> Form:
    """Return the fields of a form of so many bytes at most.

    Raises RefusedError where another site may be behind it, or it cannot be read.
    """
    check_origin(request)
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise RefusedError(
            kinds.UNSUPPORTED_MEDIA_TYPE, "a form of the dashboard is sent as a browser does"
        )
    body = await body_reader.read(request, max_bytes, sender)
    try:
        form = (
            _parse_fields(body)
            if len(body) <= PARSE_INLINE_BYTES
            else await asyncio.to_thread(_parse_fields, body)
        )
    except ValueError as error:
        raise RefusedError(kinds.MALFORMED, "the form cannot be read") from error
    if not is_valid_form_token(request, field_value(form, TOKEN_FIELD)):
        detail = "the form is not one of this browser's pages, or has got old: load the page again"
        raise RefusedError(kinds.STALE_FORM, detail)
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
        raise RefusedError(kinds.STALE_FORM, "a page of another site is behind this request")


def field_value(form: Form, name: str) -> str:
    """Return a field's value, stripped, empty where there is none."""
    return form.get(name, [""])[0].strip()


def nonempty_fields(form: Form) -> dict[str, str]:
    """Return the fields that have something in them, but for the form's token."""
    found = {name: values[0].replace("\r\n", "\n").strip() for name, values in form.items()}
    return {name: text for name, text in found.items() if text and name != TOKEN_FIELD}
