"""Child processes that cannot outlive us, each in a process group of its own.

Everything is forked from one thread that never ends, because Linux delivers the parent-death
signal when the forking thread ends: children started from a short-lived thread would otherwise
die with it. What remains of a group is killed when its first process ends, as a container's
cgroup would be.
"""

import functools
import math
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL, Signals

from asyncjob_dev import launch

POLL_INTERVAL = 0.02

_Popen = subprocess.Popen[bytes]


class _Spawner:
    """The thread that forks."""

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[tuple[Callable[[], _Popen], Future[_Popen]]] = (
            queue.SimpleQueue()
        )
        threading.Thread(target=self._serve, name="spawner", daemon=True).start()

    def run(self, start: Callable[[], _Popen]) -> _Popen:
        answer: Future[_Popen] = Future()
        self._requests.put((start, answer))
        return answer.result()

    def _serve(self) -> None:
        while True:
            start, answer = self._requests.get()
            try:
                answer.set_result(start())
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                answer.set_exception(error)


@functools.cache
def _spawner(_pid: int) -> _Spawner:
    """One per process: a fork of this program has the object but not its thread."""
    return _Spawner()


def bound_command(command: Sequence[str]) -> list[str]:
    """Return the argv that runs `command` so that it dies with this process."""
    launcher = [sys.executable, "-I", "-S", launch.__file__]
    return [*launcher, str(os.getpid()), "--", *command]


class Subprocess:
    """A started process and its group."""

    def __init__(self, popen: _Popen) -> None:
        self._popen = popen
        self._reaping = threading.Lock()

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its group."""
        return self._popen.pid

    def poll(self) -> int | None:
        """Return how it ended (negative: by which signal), or None while it runs."""
        with self._reaping:
            if self._popen.returncode is None and _has_ended(self._popen):
                # The group is swept while its leader is still a zombie: the id is not reused yet.
                self._signal_group(SIGKILL)
                self._popen.wait()
            return self._popen.returncode

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the end; None when `timeout` seconds were not enough."""
        if timeout is None:
            _block_until_ended(self.pid)
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() >= deadline:
                return None
            time.sleep(POLL_INTERVAL)
        return code

    def signal(self, number: Signals) -> None:
        """Signal the process alone, as a container runtime does with SIGTERM."""
        with self._reaping:
            if self._popen.returncode is None:
                os.kill(self.pid, number)

    def signal_group(self, number: Signals) -> None:
        """Signal the process and everything it started in its group."""
        with self._reaping:
            if self._popen.returncode is None:
                self._signal_group(number)

    def _signal_group(self, number: Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


# macOS has no waitid before Python 3.13: there we poll, and the group is swept just after reaping.
_CAN_PEEK = hasattr(os, "waitid")


def _has_ended(popen: _Popen) -> bool:
    if not _CAN_PEEK:
        return popen.poll() is not None
    return os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _block_until_ended(pid: int) -> None:
    if _CAN_PEEK:
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def spawn(
    command: Sequence[str],
    *,
    log_file: Path,
    env: Mapping[str, str] | None,
    cwd: Path | None,
    outlives_us: bool = False,
) -> Subprocess:
    """Start `command`; its output is appended to `log_file`."""
    argv = list(command) if outlives_us else bound_command(command)
    with log_file.open("ab") as log:

        def start() -> _Popen:
            return subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=None if env is None else dict(env),
                cwd=cwd,
                start_new_session=True,
            )

        return Subprocess(_spawner(os.getpid()).run(start))
