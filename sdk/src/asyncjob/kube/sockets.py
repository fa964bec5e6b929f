"""Sockets that notice a peer that is gone: a watch is silent for minutes even when it is well."""

import socket
from typing import Final

KEEPALIVE_IDLE_SECONDS: Final = 15
KEEPALIVE_PROBE_SECONDS: Final = 5
KEEPALIVE_PROBES: Final = 3

_KEEPALIVE_OPTIONS: Final = (
    ("TCP_KEEPIDLE", KEEPALIVE_IDLE_SECONDS),
    ("TCP_KEEPINTVL", KEEPALIVE_PROBE_SECONDS),
    ("TCP_KEEPCNT", KEEPALIVE_PROBES),
    (
        "TCP_USER_TIMEOUT",
        (KEEPALIVE_IDLE_SECONDS + KEEPALIVE_PROBE_SECONDS * KEEPALIVE_PROBES) * 1000,
    ),
)
"""Not every system has all of them; those that lack one fall back to its own default."""


def keepalive_socket(
    address: tuple[
        int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]
    ],
) -> socket.socket:
    """Return a socket whose connection breaks within about half a minute of losing its peer."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE_OPTIONS:
        option = getattr(socket, name, None)
        if option is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made
