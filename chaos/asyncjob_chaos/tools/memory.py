"""A memory limit as a container has it: a control group of our own, version 1 or 2."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from asyncjob_chaos.errors import ImpossibleHereError

ROOT: Final = Path("/sys/fs/cgroup")
PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def cannot_limit_memory() -> str:
    """Return why no memory can be limited here."""
    return "" if _hierarchy() else "no control group for memory can be made (root on Linux can)"


def _hierarchy() -> tuple[Path, str] | None:
    first = ROOT / "memory"
    if os.access(first, os.W_OK) and (first / "memory.limit_in_bytes").exists():
        return first, "memory.limit_in_bytes"
    controllers = ROOT / "cgroup.subtree_control"
    with suppress(OSError):
        if os.access(ROOT, os.W_OK) and "memory" in controllers.read_text().split():
            return ROOT, "memory.max"
    return None


class MemoryLimit:
    """A control group; the kernel kills a process in it that needs more."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, pid: int) -> None:
        """Put a process under the limit."""
        with suppress(ProcessLookupError):
            (self._folder / "cgroup.procs").write_text(str(pid))


@contextmanager
def memory_limit(mib: int) -> Iterator[MemoryLimit]:
    """Make one, for as long as it is entered; its processes then belong to where we are."""
    found = _hierarchy()
    if found is None:
        raise ImpossibleHereError(cannot_limit_memory())
    parent, knob = found
    folder = parent / f"asyncjob-chaos-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    try:
        (folder / knob).write_text(str(mib << 20))
        yield MemoryLimit(folder)
    finally:
        for pid in (folder / "cgroup.procs").read_text().split():
            with suppress(OSError):
                (parent / "cgroup.procs").write_text(pid)
        with suppress(OSError):
            folder.rmdir()


def resident_mib(pid: int) -> int:
    """Return what a process occupies now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * PAGE >> 20
