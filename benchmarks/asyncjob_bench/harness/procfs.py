"""CPU time and memory of processes and of the machine, from Linux' /proc."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from asyncjob_bench.errors import BenchError
from asyncjob_bench.stats.usage import Usage

PROC: Final = Path("/proc")
UTIME, STIME, CUTIME, CSTIME, PARENT = 11, 12, 13, 14, 1
MIB: Final = 1024.0


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """What is used of /proc/PID/stat; ticks include those of children that have ended."""

    parent: int
    ticks: int

    @classmethod
    def of(cls, text: str) -> "ProcessStat":
        """Read the line; a program's name may hold blanks and brackets."""
        fields = text.rpartition(")")[2].split()
        ticks = sum(int(fields[at]) for at in (UTIME, STIME, CUTIME, CSTIME))
        return cls(int(fields[PARENT]), ticks)


def machine_ticks(text: str) -> tuple[int, int]:
    """Return busy and available ticks of all cores, from /proc/stat.

    What a hypervisor gave to others counts as busy: it was not ours to use.
    """
    user, nice, system, idle, waiting, interrupts, soft, *more = map(int, _first(text).split()[1:])
    stolen = more[0] if more else 0
    busy = user + nice + system + interrupts + soft + stolen
    return busy, busy + idle + waiting


def memory_mib(text: str, field: str = "VmRSS") -> float:
    """Return a line of /proc/PID/status that counts kB, in MiB."""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) / MIB
    raise BenchError(f"no {field} in /proc/PID/status")


def resident_mib(pid: int) -> float:
    """Return what a process occupies now."""
    return memory_mib((PROC / str(pid) / "status").read_text())


def peak_mib(pid: int) -> float:
    """Return the most that a process has occupied."""
    return memory_mib((PROC / str(pid) / "status").read_text(), "VmHWM")


def usage(programs: Mapping[str, Iterable[int]]) -> Usage:
    """Return what each program's processes and their children have used since they began."""
    per_second = os.sysconf("SC_CLK_TCK")
    stats = _all_stats()
    used = {
        name: sum(stats[pid].ticks for pid in with_descendants(pids, stats)) / per_second
        for name, pids in programs.items()
    }
    busy, available = machine_ticks((PROC / "stat").read_text())
    own = stats[os.getpid()].ticks
    return Usage(used, busy / per_second, available / per_second, own / per_second)


def _all_stats() -> dict[int, ProcessStat]:
    found = {}
    for folder in PROC.iterdir():
        if folder.name.isdecimal():
            try:
                found[int(folder.name)] = ProcessStat.of((folder / "stat").read_text())
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def with_descendants(pids: Iterable[int], stats: Mapping[int, ProcessStat]) -> set[int]:
    """Return those of the processes that there are, with all that descends from them."""
    members = {pid for pid in pids if pid in stats}
    while more := {pid for pid, it in stats.items() if it.parent in members} - members:
        members |= more
    return members


def _first(text: str) -> str:
    return text.partition("\n")[0]
