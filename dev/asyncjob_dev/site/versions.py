"""Which versions of the documentation lie beside each other, and which one is `latest`."""

import re
from collections.abc import Iterable
from typing import Final

DEVELOPMENT: Final = "dev"
LATEST: Final = "latest"

_RELEASE: Final = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")


def is_name(version: str) -> bool:
    """Return whether a version may name a folder of the site."""
    return bool(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", version)) and version != LATEST


def latest(versions: Iterable[str]) -> str:
    """Return the newest release, or what is in development where nothing has been released."""
    return in_order(versions)[0]


def in_order(versions: Iterable[str]) -> list[str]:
    """Return releases, the newest first, then all others by name."""
    return sorted(versions, key=_rank)


def listing(versions: Iterable[str]) -> list[dict[str, object]]:
    """Return what the selector of versions reads: the newest first, `latest` beside its version."""
    ordered = in_order(versions)
    return [
        {"version": one, "title": one, "aliases": [LATEST] if one == ordered[0] else []}
        for one in ordered
    ]


def _rank(version: str) -> tuple[int, tuple[int, ...], str]:
    found = _RELEASE.fullmatch(version)
    if not found:
        return 1, (), version
    return 0, tuple(-int(number) for number in found.groups()), version
