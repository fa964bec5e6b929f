"""Ties a child to its worker: it ends when the worker is gone, and not before it is told to.

On Linux the kernel kills it (PR_SET_PDEATHSIG), even if it is blocked in native code. Elsewhere,
and for what the handler has started, the end of the socket does it.
"""

import ctypes
import os
import signal
import sys
from types import FrameType
from typing import Final, NoReturn

_PR_SET_PDEATHSIG: Final = 1

EXIT_ORPHANED: Final = 70


def die_with(parent_pid: int) -> None:
    """Die with the worker's process; ignore the signals that are meant for it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        exit_group()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not SIG_IGN: a program that the handler starts would ignore them too.
        signal.signal(number, _ignore)


def exit_group() -> NoReturn:
    """End at once, with everything that the handler has started."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(EXIT_ORPHANED)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Go on."""
