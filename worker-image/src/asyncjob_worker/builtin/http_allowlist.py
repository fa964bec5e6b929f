"""Which hosts `http` may call: an allow-list, compared with exactly the URL that is opened.

Pure. Everything that could be read in two ways (an address in an unusual spelling, user names
before the host) is refused before the list is checked, so that list and connection mean the same
host.
"""

import ipaddress
import re
from dataclasses import dataclass

from yarl import URL

ALLOW_VARIABLE = "ASYNCJOB_HTTP_ALLOW"
DEFAULT_PORTS = {"http": 80, "https": 443}

_ENTRY = re.compile(r"(?P<any>\*\.)?(?P<host>\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:(?P<port>\d{1,5}))?")
_HOST_NAME = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*")
_MAX_PORT = 65535
_MAX_NAME, _MAX_LABEL = 253, 63


class HostRefusedError(Exception):
    """The host is not in the allow-list."""


@dataclass(frozen=True, slots=True)
class AllowedHost:
    """One entry of the list. Without a port it allows the default port of the URL's scheme."""

    name: str
    port: int | None = None
    subdomains: bool = False

    def allows(self, name: str, port: int | None, scheme: str) -> bool:
        """Return whether a URL with this host (in canonical form), port and scheme is allowed."""
        if port != (DEFAULT_PORTS[scheme] if self.port is None else self.port):
            return False
        return name.endswith(f".{self.name}") if self.subdomains else name == self.name


@dataclass(frozen=True, slots=True)
class HostAllowList:
    """The allow-list; an empty one allows nothing."""

    entries: tuple[AllowedHost, ...] = ()

    def check(self, url: URL) -> None:
        """Raise HostRefusedError, which says what to set, unless the URL may be called."""
        name = canonical_host(url)
        if not any(entry.allows(name, url.port, url.scheme) for entry in self.entries):
            raise HostRefusedError(
                f"the worker may not call {_entry_for(url)}: {ALLOW_VARIABLE} does not list it"
                + ("" if self.entries else " (it is empty, and nothing is allowed)")
            )


def parse_url(text: str) -> URL:
    """Return the URL as it will be opened; raises ValueError, which says what is wrong with it."""
    url = URL(text).with_fragment(None)
    if url.scheme not in DEFAULT_PORTS:
        raise ValueError("it has to begin with http:// or https://")
    if url.raw_user is not None or url.raw_password is not None:
        raise ValueError("it may hold no user name or password; use the Authorization header")
    canonical_host(url)
    return url


def parse_host(text: str) -> AllowedHost:
    """Return an entry of the list: host, *.domain, either with :port; raises ValueError."""
    match = _ENTRY.fullmatch(text.lower())
    if match is None:
        raise ValueError(f"{text!r} is not a host, host:port or *.domain (IPv6 in brackets)")
    if match["any"] and _is_address(match["host"]):
        raise ValueError(f"{text!r} puts a wildcard before an address")
    name = _canonical(match["host"].strip("[]"))
    port = int(match["port"]) if match["port"] else None
    if port is not None and not 0 < port <= _MAX_PORT:
        raise ValueError(f"{text!r} has no valid port")
    return AllowedHost(name, port, subdomains=bool(match["any"]))


def canonical_host(url: URL) -> str:
    """Return the host in the canonical spelling, which is compared; raises ValueError."""
    if not url.raw_host:
        raise ValueError("it has no host")
    return _canonical(url.raw_host.lower())


def _canonical(host: str) -> str:
    """Return the canonical spelling, without a trailing dot; raises ValueError.

    The dot only keeps the resolver from trying search domains.
    """
    name = host.removesuffix(".")
    if ":" in name:
        return ipaddress.IPv6Address(name).compressed if "%" not in name else _refuse(host)
    if _is_address(name):
        return str(ipaddress.IPv4Address(host))
    fits = len(name) <= _MAX_NAME and max(map(len, name.split("."))) <= _MAX_LABEL
    return name if fits and _HOST_NAME.fullmatch(name) else _refuse(host)


def _refuse(host: str) -> str:
    raise ValueError(f"{host!r} is not a host name")


def _is_address(host: str) -> bool:
    return ":" in host or bool(_NUMBER.fullmatch(host.removesuffix(".").rpartition(".")[2]))


def _entry_for(url: URL) -> str:
    """Return the entry of the list that would allow this URL."""
    name = canonical_host(url)
    host = f"[{name}]" if ":" in name else name
    return host if url.is_default_port() else f"{host}:{url.port}"
