"""Parses URLs that anyone may send in a header.

An invalid one is no fault of the gateway and yields empty parts.
"""

from urllib.parse import SplitResult, urlsplit


def split_url(url: str) -> SplitResult:
    """Return the parts of an address; all are empty where it is none."""
    try:
        parts = urlsplit(url)
        _ = parts.hostname, parts.port  # these are read only when asked for
    except ValueError:
        return SplitResult("", "", "", "", "")
    return parts
