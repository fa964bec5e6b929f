"""Limits what a handler process may allocate, and measures what it has allocated.

RLIMIT_DATA counts private writable memory: heap, anonymous maps, stacks of threads. RLIMIT_AS would
also count what is only mapped (libraries, shared memory, reserved address space), which says little
about the memory used.
"""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MIB = 1024 * 1024

_STATM = Path("/proc/self/statm")
_DATA_FIELD = 5
"""Index in statm of the pages of data and stack."""


@contextmanager
def memory_limit(limit_mib: int | None) -> Iterator[None]:
    """Limit the process to `limit_mib` MiB while inside; None is no limit.

    Raises MemoryError if the process holds as much already.
    """
    if limit_mib is None:
        yield
        return
    _check_limit(limit_mib)
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_within(limit_mib * MIB, soft), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def allocated() -> int:
    """Return the bytes that count towards the limit; 0 where the system has no /proc."""
    try:
        pages = int(_STATM.read_text(encoding="ascii").split()[_DATA_FIELD])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * resource.getpagesize()


def _check_limit(mib: int) -> None:
    held = allocated() // MIB
    if held >= mib:
        raise MemoryError(
            f"memory_mib={mib} is too little: the app alone takes {held} MiB in its process, "
            "with the resources that are open"
        )


def _within(wanted: int, limit: int) -> int:
    return wanted if limit == resource.RLIM_INFINITY else min(wanted, limit)
