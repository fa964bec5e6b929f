"""Small disks of our own, in memory, that can be filled and freed."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOSPC
from pathlib import Path
from typing import Final

from asyncjob_chaos.errors import ImpossibleHereError

FILLER: Final = "filler"
BLOCK: Final = bytes(1 << 16)


def cannot_mount() -> str:
    """Return why no disk can be mounted here."""
    if os.geteuid() != 0:
        return "only root can mount a small disk"
    if not Path("/proc/mounts").exists():
        return "there is no tmpfs here"
    return ""


class SmallDisk:
    """A mounted folder with little room."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self) -> None:
        """Leave no byte free."""
        with (self.path / FILLER).open("ab", buffering=0) as file:
            try:
                while True:
                    file.write(BLOCK)
            except OSError as error:
                if error.errno != ENOSPC:
                    raise

    def free(self) -> None:
        """Give the room back."""
        (self.path / FILLER).unlink(missing_ok=True)

    def is_full(self) -> bool:
        """Whether nothing more can be written."""
        found = os.statvfs(self.path)
        return found.f_bavail == 0


@contextmanager
def small_disk(path: Path, mib: int) -> Iterator[SmallDisk]:
    """Mount one at the path, for as long as it is entered."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    options = f"size={mib}m,mode=0700"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "asyncjob-chaos", str(path)],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise ImpossibleHereError(f"no disk can be mounted here: {done.stderr.strip()}")
    try:
        yield SmallDisk(path)
    finally:
        with suppress(subprocess.CalledProcessError):
            # Lazily: a process that is being killed may still have a file open.
            subprocess.run(["umount", "-l", str(path)], check=True, capture_output=True)
