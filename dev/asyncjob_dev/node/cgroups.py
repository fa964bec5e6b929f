"""The cgroups of a node: one below each hierarchy's root (version 1), or one in all (version 2).

They are the one thing besides files that the kernel does not take away by itself.
"""

import time
from pathlib import Path

from asyncjob_dev.node.errors import LeftoverError

MOUNTED = Path("/sys/fs/cgroup")
CGROUPS_GONE_SECONDS = 30.0
POLL_SECONDS = 0.05


def cgroup_roots(mounted: Path = MOUNTED) -> list[Path]:
    """Return the roots to make a cgroup in; none where there are no cgroups."""
    if (mounted / "cgroup.controllers").exists():
        return [mounted]
    if not mounted.is_dir():
        return []
    return [path for path in mounted.iterdir() if _is_version_1(path)]


def create_cgroups(name: str, mounted: Path = MOUNTED) -> None:
    """Make the node's cgroups; harmless where they are."""
    for root in cgroup_roots(mounted):
        (root / name).mkdir(exist_ok=True)


def remove_cgroups(name: str, mounted: Path = MOUNTED) -> None:
    """Remove the node's cgroups with all below, once their processes have ended."""
    deadline = time.monotonic() + CGROUPS_GONE_SECONDS
    for root in cgroup_roots(mounted):
        while not _removed(root / name):
            if time.monotonic() >= deadline:
                raise LeftoverError(f"cgroup {root / name}")
            time.sleep(POLL_SECONDS)


def _is_version_1(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and (path / "cgroup.procs").exists()


def _removed(cgroup: Path) -> bool:
    if not cgroup.is_dir():
        return True
    # Only folders: the files in there are the kernel's and cannot be unlinked.
    below = sorted((path for path in cgroup.rglob("*/")), reverse=True)
    try:
        for path in (*below, cgroup):
            path.rmdir()
    except FileNotFoundError:
        return not cgroup.exists()
    except OSError:
        return False
    return True
