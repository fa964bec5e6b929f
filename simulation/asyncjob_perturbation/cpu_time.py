"""The CPU time of this process and of all that it has started: parts, API server, etcd."""

import os
from pathlib import Path
from typing import Final

_TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """Return what this process, its descendants and those of them that have ended have taken.

    What has ended is counted by the process that waited for it, as the kernel does.
    """
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        pid = int(entry.name)
        parents[pid] = int(fields[1])
        ticks[pid] = sum(map(int, fields[11:15]))  # own and waited-for, in user and kernel mode
    return sum(ticks[pid] for pid in ticks if _is_below(pid, parents)) / _TICKS_A_SECOND


def _is_below(pid: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        if pid == os.getpid():
            return True
        pid = parents[pid]
    return False
