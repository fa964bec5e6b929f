"""Free ports on the loopback address.

They are taken from below the range the kernel uses for outgoing connections: a port between
choosing and binding can then only be lost to another program that asks for that very number.
Callers retry in that case.
"""

import random
import socket
from pathlib import Path

from asyncjob_dev.errors import NoFreePortError

LOOPBACK = "127.0.0.1"
LOWEST = 20000
HIGHEST = 32000
TRIES = 200
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def is_free(port: int) -> bool:
    """Whether the port can be bound right now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As the servers do: a port whose old connections linger is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_ports(count: int, chance: random.Random | None = None) -> list[int]:
    """Return `count` different ports that are free now."""
    low, high = _bounds(EPHEMERAL)
    numbers = (chance or random.Random()).sample(range(low, high), TRIES)
    found: list[int] = []
    for port in numbers:
        if len(found) == count:
            break
        if is_free(port):
            found.append(port)
    if len(found) < count:
        raise NoFreePortError(f"no {count} free ports on {LOOPBACK} between {low} and {high}")
    return found


def _bounds(ephemeral: Path) -> tuple[int, int]:
    try:
        first = int(ephemeral.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return LOWEST, HIGHEST
    high = min(HIGHEST, first)
    return (LOWEST, high) if high - LOWEST >= TRIES else (LOWEST, HIGHEST)
