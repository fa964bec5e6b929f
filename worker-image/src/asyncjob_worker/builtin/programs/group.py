"""Ends a program with all it has started: its process group.

The program's own process stays a zombie until its group is killed, so that its number cannot have
passed to another process by then.
"""

import os
import signal
import subprocess
import time
from contextlib import suppress

EXIT_POLL_SECONDS = 0.02
TERM_SECONDS = 2.0
"""Between SIGTERM and SIGKILL. Less than a drain allows (`--stop-wait`)."""

REAP_SECONDS = 1.0


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether the program has ended; leaves it to be reaped."""
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return process.returncode is not None or bool(os.waitid(os.P_PID, process.pid, options))


def end_group(process: subprocess.Popen[bytes], term_seconds: float = TERM_SECONDS) -> int:
    """End the group and reap it; return the program's exit code. Polite if it still runs."""
    if not has_ended(process):
        _signal_group(process.pid, signal.SIGTERM)
        _wait_until_ended(process, term_seconds)
    _signal_group(process.pid, signal.SIGKILL)
    code = process.wait()
    _reap_orphans(process.pid)
    return code


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _wait_until_ended(process: subprocess.Popen[bytes], timeout: float) -> None:
    give_up_at = time.monotonic() + timeout
    while not has_ended(process) and time.monotonic() < give_up_at:
        time.sleep(EXIT_POLL_SECONDS)


def _reap_orphans(group: int) -> None:
    """Reap what the program left behind, where that falls to us: as a container's first process."""
    give_up_at = time.monotonic() + REAP_SECONDS
    with suppress(ChildProcessError):
        while time.monotonic() < give_up_at:
            if os.waitpid(-group, os.WNOHANG) == (0, 0):
                time.sleep(EXIT_POLL_SECONDS)
