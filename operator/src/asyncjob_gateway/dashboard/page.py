"""Pages as HTTP answers: templates filled in, and the headers that keep strangers out of them."""

from collections.abc import Mapping
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import Response

from asyncjob_gateway.dashboard.frame import Frame
from asyncjob_gateway.dashboard.words import plural

CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)

SECURITY_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

HTML_MEDIA_TYPE: Final = "text/html; charset=utf-8"

_TEMPLATES: Final = Environment(
    loader=PackageLoader("asyncjob_gateway.dashboard"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals.update(plural=plural)
_TEMPLATES.globals.update(parts=_TEMPLATES.get_template("parts.html").module)


def render_html(template: str, frame: Frame, view: object, **more: object) -> str:
    """Return a page as text; everything in it is escaped."""
    return _TEMPLATES.get_template(template).render(frame=frame, view=view, **more)


def render_page(
    template: str, frame: Frame, view: object, status: int = 200, **more: object
) -> Response:
    """Return a page as an answer. Nobody keeps it: it may show payloads."""
    return Response(
        render_html(template, frame, view, **more),
        status,
        {"Cache-Control": "no-store"},
        HTML_MEDIA_TYPE,
    )


def see_other(url: str) -> Response:
    """Return the answer to a form: go and look there."""
    return Response(status_code=303, headers={"Location": url, "Cache-Control": "no-store"})


def add_security_headers(response: Response) -> Response:
    """Return the answer with the headers that all pages have."""
    for name, value in SECURITY_HEADERS.items():
        response.headers.setdefault(name, value)
    return response
