"""Wall clocks that are wrong, for one process each.

No process may change the machine's clock for others, and Linux has no namespace for it: a few lines
of C, preloaded, stand between the process and the C library.
"""

import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Final

from asyncjob_chaos.errors import ImpossibleHereError

SOURCE: Final = Path(__file__).with_name("wall_clock.c")


def cannot_change_clocks() -> str:
    """Return why no clock can be changed here."""
    if not sys.platform.startswith("linux"):
        return "clocks are changed by LD_PRELOAD, which Linux has"
    return "" if shutil.which("cc") else "there is no C compiler (cc)"


class WrongClock:
    """The clock of one process, or of several."""

    def __init__(self, folder: Path, name: str) -> None:
        self._file = folder / f"clock-{name}"
        self.set(0.0)
        self._library = folder / "wall_clock.so"
        if not self._library.exists():
            command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(self._library), str(SOURCE)]
            done = subprocess.run([*command, "-ldl"], check=False, capture_output=True, text=True)
            if done.returncode:
                raise ImpossibleHereError(f"the clock cannot be built: {done.stderr[-300:]}")

    @property
    def environment(self) -> dict[str, str]:
        """What a process that has this clock is started with."""
        return {"LD_PRELOAD": str(self._library), "ASYNCJOB_CHAOS_CLOCK": str(self._file)}

    def set(self, seconds: float) -> None:
        """Have it wrong by so much from now on."""
        mode = "r+b" if self._file.exists() else "wb"  # what is mapped must not be cut
        with self._file.open(mode) as file:
            file.write(struct.pack("d", seconds))
