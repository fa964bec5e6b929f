"""Sockets that notice a peer that is gone: a watch is silent for minutes even when it is well."""

import socket
from typing import Final

IDLE_SECONDS: Final = 15
PROBE_SECONDS: Final = 5
PROBES: Final = 3

_TIMES: Final = (
    ("TCP_KEEPIDLE", IDLE_SECONDS),
    ("TCP_KEEPINTVL", PROBE_SECONDS),
    ("TCP_KEEPCNT", PROBES),
    ("TCP_USER_TIMEOUT", (IDLE_SECONDS + PROBE_SECONDS * PROBES) * 1000),
)
"""Not every system has all of them; those that lack one fall back to its own default."""


def watched_socket(
    address: tuple[
        int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]
    ],
) -> socket.socket:
    """Return a socket whose connection breaks within about half a minute of losing its peer."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _TIMES:
        option = getattr(socket, name, None)
        if option is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made
