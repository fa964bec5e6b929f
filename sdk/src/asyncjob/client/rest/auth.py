"""Where the bearer token and the gateway's address come from."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from asyncjob.client.errors import ClientConfigError

SERVER_VARIABLE: Final = "ASYNCJOB_SERVER"
TOKEN_VARIABLE: Final = "ASYNCJOB_TOKEN"  # noqa: S105  # the name of a variable
TOKEN_FILE_VARIABLE: Final = "ASYNCJOB_TOKEN_FILE"  # noqa: S105  # the name of a variable

TokenSource: TypeAlias = Callable[[], str | None]
"""Gives the token of the next request; called for each, so that it may change."""


def token_from(given: str | TokenSource | Path | None) -> TokenSource:
    """Return the token's source: given itself, by a function or a file, or by the environment.

    In the environment ASYNCJOB_TOKEN comes before ASYNCJOB_TOKEN_FILE. Without any, requests go
    without a token, which only a gateway for development accepts.
    """
    if given is None:
        return _from_environment
    if isinstance(given, str):
        return given.strip
    return _from_file(given) if isinstance(given, Path) else given


def address_from(given: str | None) -> str:
    """Return the gateway's address without a slash at its end; raises ClientConfigError."""
    address = given or os.environ.get(SERVER_VARIABLE, "")
    if not address:
        raise ClientConfigError(f"no gateway is given: name its address, or set {SERVER_VARIABLE}")
    if not _is_address(address):
        raise ClientConfigError(
            f"{address!r} is not the address of a gateway, such as https://jobs/"
        )
    return address.rstrip("/")


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port  # raises where it is no number
    except ValueError:
        return False
    plain = text.isprintable() and " " not in text
    return plain and parts.scheme in {"http", "https"} and bool(parts.hostname)


def _from_environment() -> str | None:
    token, file = os.environ.get(TOKEN_VARIABLE), os.environ.get(TOKEN_FILE_VARIABLE)
    if token:
        return token.strip()
    return _from_file(Path(file))() if file else None


def _from_file(path: Path) -> TokenSource:
    def read() -> str:
        try:
            return path.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ClientConfigError(f"the token cannot be read from {path}: {error}") from error

    return read
