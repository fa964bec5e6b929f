"""What every page has around its content, and the rendering of templates.

Also the security headers of every page.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import Response

from asyncjob_gateway.dashboard.formatting import DisplayTime, display_time, plural
from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.dashboard.permissions import Permissions

NOTICES: Final = {
    "submitted": "Submitted.",
    "cancelled": "Cancellation requested.",
    "rerun": "Rerun requested; this is the new job.",
    "redriven": "Redrive requested.",
    "dismissed": "Dismissal requested.",
    "suspended": "Suspended.",
    "resumed": "Resumed.",
    "priority": "Priority changed.",
    "signalled": "Signal sent.",
    "paused": "Queue paused: no job of it starts.",
    "unpaused": "Queue resumed.",
    "triggered": "Triggered; this is the new job.",
    "array-cancelled": "Cancellation of the array requested.",
    "array-redriven": "Redrive of the failed items requested.",
    "array-suspended": "Array suspended: no chunk of it starts.",
    "array-resumed": "Array resumed.",
    "cron-suspended": "Cron job suspended.",
    "cron-resumed": "Cron job resumed.",
}
"""What a page says after an action. A closed list: an address cannot make a page say anything."""


@dataclass(frozen=True, slots=True)
class Section:
    """One entry of the navigation; `key` goes there after `g`."""

    name: str
    title: str
    path: str
    key: str


QUEUES_SECTION: Final = Section("queues", "Queues", "/queues", "q")
JOBS_SECTION: Final = Section("jobs", "Jobs", "/jobs", "j")
DEAD_LETTERS_SECTION: Final = Section("dead", "Dead letters", "/dead-letters", "d")
ARRAYS_SECTION: Final = Section("arrays", "Arrays", "/arrays", "a")
CRON_JOBS_SECTION: Final = Section("cron", "Cron jobs", "/cron-jobs", "c")
WORKERS_SECTION: Final = Section("workers", "Workers", "/workers", "w")
SUBMIT_SECTION: Final = Section("submit", "Submit", "/submit", "s")


@dataclass(frozen=True, slots=True)
class Frame:
    """Who reads which namespace, what they may do, and when the page was made."""

    links: Links
    namespace: str
    namespaces: tuple[str, ...]
    allowed: Permissions
    now: datetime
    caller: str = ""
    can_sign_out: bool = False
    form_token: str = ""
    did: str = ""
    dead_letters: int = 0
    assets: str = ""

    @property
    def made(self) -> DisplayTime:
        """When the page was made."""
        made = display_time(self.now.isoformat(), self.now)
        assert made
        return made

    @property
    def notice(self) -> str:
        """What was just done."""
        return NOTICES.get(self.did, "")

    @property
    def sections(self) -> list[Section]:
        """The navigation: what the reader may see."""
        allowed = self.allowed
        shown = (
            (allowed.list_queues, QUEUES_SECTION),
            (allowed.list_jobs, JOBS_SECTION),
            (allowed.list_jobs, DEAD_LETTERS_SECTION),
            (allowed.list_arrays, ARRAYS_SECTION),
            (allowed.list_cron_jobs, CRON_JOBS_SECTION),
            (allowed.list_queues, WORKERS_SECTION),
            (allowed.submit, SUBMIT_SECTION),
        )
        return [section for may, section in shown if may]


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
