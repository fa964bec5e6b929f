"""Style sheet, scripts and icon: read once, named after their content, kept for ever."""

import hashlib
from functools import cache
from importlib.resources import files
from typing import Final

from asyncjob_gateway.dashboard.links import PREFIX

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
