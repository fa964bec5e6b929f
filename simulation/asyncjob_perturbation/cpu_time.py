"""The CPU time of this process and of all that it has started: parts, API server, etcd.

And that of the whole machine, which tells whether other programs kept it busy.
"""

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


def machine_seconds() -> float:
    """Return what all programs have taken since the machine was started, and other machines on it.

    That is user, nice, system, irq, softirq and steal of the first line of /proc/stat.
    """
    fields = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))
    idle, iowait = fields[3:5]
    return (sum(fields) - idle - iowait) / _TICKS_A_SECOND


def share_of_others(machine: float, own: float, wall: float) -> float:
    """Return which share of all processors other programs took, from 0.0 to 1.0.

    Given are the CPU seconds of the machine and of our own programs, and how long that was.
    """
    return min(1.0, max(0.0, machine - own) / (wall * (os.cpu_count() or 1)))


def _is_below(pid: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        if pid == os.getpid():
            return True
        pid = parents[pid]
    return False
