"""URLs of pages and of static files.

Every page URL names the namespace, unless that is the gateway's own; static files are read once,
and their URL changes with their content.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final
from urllib.parse import quote, urlencode

from asyncjob.models.job import Dependency
from asyncjob_gateway.urls import split_url

PREFIX: Final = "/dashboard"

_FORM_PATH: Final = re.compile(
    r"(/jobs/[a-z0-9.-]+|/arrays/[a-z0-9.-]+)/[a-z]+|(/dead-letters)/[a-z]+|(/queues|/cron-jobs)/[^/]+/[a-z]+"
)

Query = Mapping[str, str | int | Sequence[str] | None]


@dataclass(frozen=True, slots=True)
class Links:
    """Makes addresses; `namespace` is None for the gateway's own."""

    namespace: str | None = None

    def to(self, path: str, query: Query | None = None) -> str:
        """Return the address of a page, relative to the dashboard; empty values are left out."""
        given = {"namespace": self.namespace, **(query or {})}
        pairs = [
            (name, str(one))
            for name, value in given.items()
            for one in (value if isinstance(value, list | tuple) else [value])
            if one not in {None, ""}
        ]
        return f"{PREFIX}{path}" + (f"?{urlencode(pairs)}" if pairs else "")

    def job(self, job_id: str, query: Query | None = None) -> str:
        """Return the address of a job's page."""
        return self.to(f"/jobs/{quote(job_id, safe='')}", query)

    def array(self, name: str, query: Query | None = None) -> str:
        """Return the address of an array's page."""
        return self.to(f"/arrays/{quote(name, safe='')}", query)

    def dependency(self, dependency: Dependency) -> str:
        """Return the address of the page of what something depends on."""
        return self.array(dependency.array) if dependency.array else self.job(dependency.called)

    def jobs(self, **filters: str | int | Sequence[str] | None) -> str:
        """Return the address of a list."""
        return self.to("/jobs", filters)


def page_path_of_form(path: str) -> str:
    """Return the page that a form's address belongs to, empty where it is no form's.

    Such an address stays in the browser where an answer to a form is a page itself; who loads it
    again, or comes back to it, sends no form.
    """
    found = _FORM_PATH.fullmatch(path)
    return next(filter(None, found.groups()), "") if found else ""


def safe_redirect_target(target: str) -> str:
    """Return the target if it is a page of the dashboard, else its first page.

    It is chosen by the author of the link to the sign-in page.
    """
    parts = split_url(target)
    ours = parts.path == PREFIX or parts.path.startswith(f"{PREFIX}/")
    odd = parts.scheme or parts.netloc or "\\" in target or not target.isprintable()
    return target if ours and not odd else f"{PREFIX}/"


MEDIA_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
IMMUTABLE: Final = "public, max-age=31536000, immutable"


@cache
def assets() -> dict[str, bytes]:
    """Return all of them, by name."""
    folder = files("asyncjob_gateway.dashboard") / "static"
    found = {one.name: one.read_bytes() for one in folder.iterdir()}
    return {name: found[name] for name in sorted(found) if name.rpartition(".")[2] in MEDIA_TYPES}


@cache
def assets_version() -> str:
    """Return what changes with any of them."""
    digest = hashlib.sha256()
    for name, content in assets().items():
        digest.update(name.encode() + b"\0" + content + b"\0")
    return digest.hexdigest()[:16]


def assets_url() -> str:
    """Return the folder that pages find them in."""
    return f"{PREFIX}/static/{assets_version()}"
