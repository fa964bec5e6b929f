"""How many CPUs this process may use: fewer than the machine has, in most containers."""

import os
from math import ceil
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def usable_cpus(cgroup: Path = CGROUP) -> int:
    """Return the CPUs of the process's affinity, within its container's quota; at least 1."""
    quota = _quota(cgroup)
    cpus = _affinity()
    return max(1, cpus if quota is None else min(cpus, ceil(quota)))


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quota(cgroup: Path) -> float | None:
    """Return the CPUs that the container's quota allows, None if it has none."""
    found = _read_cgroup(cgroup / "cpu.max").split()
    if not found:
        names = ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")
        found = [_read_cgroup(cgroup / name).strip() for name in names]
    if len(found) < 2 or not all(part.isdigit() for part in found):  # noqa: PLR2004
        return None
    quota, period = (int(part) for part in found[:2])
    return quota / period if period else None


def _read_cgroup(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""
