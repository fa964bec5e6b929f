"""Free ports on the loopback address.

They are taken from below the range the kernel uses for outgoing connections: a port between
choosing and binding can then only be lost to another program that asks for that very number.
Callers retry in that case. What one process was given, no other gets for a while: a program that
starts beside many others may take long to bind it.
"""

import fcntl
import json
import os
import random
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from asyncjob_dev.cache_folder import cache_dir
from asyncjob_dev.errors import NoFreePortError

LOOPBACK = "127.0.0.1"
LOWEST = 20000
HIGHEST = 32000
TRIES = 200
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
RESERVED_SECONDS: Final = 120.0


@dataclass(frozen=True)
class _Reservation:
    """What a process was given: by the clock of this boot, and which process."""

    at: float
    pid: int

    @property
    def is_held_by_another(self) -> bool:
        """Whether the process that was given the port still runs, and is not this one."""
        return self.pid != os.getpid() and _runs(self.pid)


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


def free_ports(
    count: int, chance: random.Random | None = None, reservations: Path | None = None
) -> list[int]:
    """Return `count` different ports that are free now, and that nobody else was just given.

    What was given is kept in the file of `reservations`, by default one in the cache.
    """
    low, high = _bounds(EPHEMERAL)
    numbers = (chance or random.Random()).sample(range(low, high), TRIES)
    with _reserved_ports(reservations or cache_dir(os.environ) / "ports") as reserved:
        free = (port for port in numbers if port not in reserved and is_free(port))
        found = list(islice(free, count))
        if len(found) < count:
            raise NoFreePortError(f"no {count} free ports on {LOOPBACK} between {low} and {high}")
        reserved.update(dict.fromkeys(found, _Reservation(_boottime(), os.getpid())))
    return found


def free_port() -> int:
    """Return one port that is free now, and that nobody else was just given."""
    (port,) = free_ports(1)
    return port


def reserve_port(port: int, reservations: Path | None = None) -> bool:
    """Return whether this port is free and this process has it now.

    Two that ask at once for the port that people look at first do not both get it, though neither
    has bound it yet.
    """
    with _reserved_ports(reservations or cache_dir(os.environ) / "ports") as reserved:
        held = reserved.get(port)
        if not is_free(port) or (held and held.is_held_by_another):
            return False
        reserved[port] = _Reservation(_boottime(), os.getpid())
    return True


@contextmanager
def _reserved_ports(file: Path) -> Iterator[dict[int, _Reservation]]:
    """Give the ports that processes were given of late; keep what is added."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        opened = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:  # a cache that cannot be written: others may be given the same ports
        yield {}
        return
    with os.fdopen(opened, "r+") as kept:
        fcntl.flock(kept, fcntl.LOCK_EX)
        now = _boottime()
        known = _parse(kept.read()).items()
        reserved = {port: one for port, one in known if 0.0 <= now - one.at < RESERVED_SECONDS}
        yield reserved
        kept.seek(0)
        kept.truncate()
        json.dump({port: [one.at, one.pid] for port, one in reserved.items()}, kept)


def _parse(content: str) -> dict[int, _Reservation]:
    """Read the reservations; none where a process died while it wrote them."""
    try:
        kept = json.loads(content).items()
        return {int(port): _Reservation(float(at), int(pid)) for port, (at, pid) in kept}
    except (ValueError, AttributeError, TypeError):
        return {}


def _runs(pid: int) -> bool:
    """Whether a process runs; one that has ended, and that its parent has not waited for, does not.

    In a container the first process may never wait for those that are left to it.
    """
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except ProcessLookupError:
        return False
    except OSError:  # another user's process, or no /proc
        return True
    return stat.rpartition(")")[2].split()[0] != "Z"


def _boottime() -> float:
    # macOS has no such clock; its monotonic one stands still while it sleeps, which keeps
    # reservations for longer.
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _bounds(ephemeral: Path) -> tuple[int, int]:
    try:
        first = int(ephemeral.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return LOWEST, HIGHEST
    high = min(HIGHEST, first)
    return (LOWEST, high) if high - LOWEST >= TRIES else (LOWEST, HIGHEST)
