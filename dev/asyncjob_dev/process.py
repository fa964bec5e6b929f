"""Supervised programs.

Started so that they cannot outlive us, waited for until ready, stopped in order.

Everything is forked from one thread that never ends, because Linux delivers the parent-death signal
when the forking thread ends: a process started from a short-lived thread would die with that
thread. What remains of a process group is killed when its first process ends, as a container's
cgroup would be.
"""

import functools
import logging
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL, Signals
from typing import Self

from asyncjob_dev import launch
from asyncjob_dev.errors import NotReadyError, ProcessDiedError, ProcessPortTakenError
from asyncjob_dev.files import tail

POLL_INTERVAL = 0.02

log = logging.getLogger(__name__)

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


PORT_TAKEN = "address already in use"

USUAL_CAUSES = (
    (
        PORT_TAKEN,
        "Its port is taken: another process listens on it; choose another port or stop it.",
    ),
    ("no space left on device", "The disk is full: set TMPDIR or the data directory elsewhere."),
    ("permission denied", "A file or folder belongs to somebody else: check the data directory."),
    ("too many open files", "Too few file descriptors: raise `ulimit -n`."),
    ("unknown flag", "It does not know one of its flags: is it the pinned version?"),
    ("cannot allocate memory", "The machine is out of memory; a control plane needs about 500 MB."),
    ("no such program", "The program does not exist; is it installed, and in the environment?"),
)


def usual_cause(log: str) -> str:
    """Return the usual cause of what the log says, or an empty string."""
    lowered = log.lower()
    return next((sentence for sign, sentence in USUAL_CAUSES if sign in lowered), "")


def process_died_error(name: str, returncode: int, log: str) -> ProcessDiedError:
    """Return the error for a process that ended too early."""
    kind = ProcessPortTakenError if PORT_TAKEN in log.lower() else ProcessDiedError
    return kind(name, returncode, log, usual_cause(log))


READY_POLL_INTERVAL = 0.05


def wait_until(
    ready: Callable[[], bool],
    what: str,
    *,
    within: float,
    alive: Sequence["ManagedProcess"] = (),
    every: float = READY_POLL_INTERVAL,
) -> None:
    """Poll `ready`; raise `ProcessDiedError` or `NotReadyError` with the end of the log."""
    deadline = time.monotonic() + within
    while True:
        # First, because what answers may be somebody else's, on the port that ours did not get.
        for process in alive:
            if process.returncode is not None:
                raise process_died_error(process.name, process.returncode, process.log_tail())
        if ready():
            return
        if time.monotonic() >= deadline:
            log = alive[-1].log_tail() if alive else ""
            raise NotReadyError(what, within, alive[-1].name if alive else None, log)
        time.sleep(every)


ALWAYS_READY: Callable[[], bool] = lambda: True  # noqa: E731


class ManagedProcess:
    """A named process with a log file and a ready probe; a context manager.

    `env` is the whole environment (None: ours). `ready` is polled until it returns True. Times are
    in seconds. A stopped process can be started again. With `outlives_us` it does not end with
    this process, which then has to see to that.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        log_file: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        ready: Callable[[], bool] = ALWAYS_READY,
        ready_within: float = 30.0,
        grace: float = 10.0,
        outlives_us: bool = False,
    ) -> None:
        self.name = name
        self.argv = tuple(argv)
        self.log_file = log_file
        self._env = env
        self._cwd = cwd
        self.ready = ready
        self._ready_within = ready_within
        self._grace = grace
        self._outlives_us = outlives_us
        self._subprocess: Subprocess | None = None
        self._log_start = 0

    @property
    def pid(self) -> int | None:
        """The process id of the newest start."""
        return self._subprocess.pid if self._subprocess else None

    @property
    def returncode(self) -> int | None:
        """How it ended (negative: by which signal); None while it runs or before the start."""
        return self._subprocess.poll() if self._subprocess else None

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._subprocess is not None and self._subprocess.poll() is None

    def start(self) -> None:
        """Start and wait until ready; on failure nothing is left running."""
        self.spawn()
        try:
            self.wait_ready()
        except BaseException:
            self.kill()
            raise

    def spawn(self) -> None:
        """Start without waiting; does nothing when it runs."""
        if not self.running:
            self._log_start = self.log_file.stat().st_size if self.log_file.exists() else 0
            self._subprocess = spawn(
                self.argv,
                log_file=self.log_file,
                env=self._env,
                cwd=self._cwd,
                outlives_us=self._outlives_us,
            )

    def wait_ready(self) -> None:
        """Wait for the ready probe; raises `ProcessDiedError` or `NotReadyError`."""
        wait_until(self.ready, self.name, within=self._ready_within, alive=[self])

    def log_tail(self) -> str:
        """Return what it last wrote since its newest start."""
        return tail(self.log_file, start=self._log_start)

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the end; None when it was never started or `timeout` was too short."""
        return self._subprocess.wait(timeout) if self._subprocess else None

    def stop(self, grace: float | None = None) -> int | None:
        """SIGTERM, wait `grace` seconds, SIGKILL; with a grace of 0 SIGKILL at once."""
        patience = self._grace if grace is None else grace
        if patience > 0:
            self.resume()
            self.terminate()
            self.wait(patience)
        return self.kill()

    def terminate(self) -> None:
        """SIGTERM the process alone and do not wait."""
        if self._subprocess:
            self._subprocess.signal(signal.SIGTERM)

    def kill(self) -> int | None:
        """SIGKILL the process and its group, and wait for the end."""
        child = self._subprocess
        if child is None:
            return None
        child.signal_group(signal.SIGKILL)
        return child.wait()

    def pause(self) -> None:
        """Freeze it (SIGSTOP): it keeps its sockets and answers nobody."""
        self._signal_group(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen process go on (SIGCONT)."""
        self._signal_group(signal.SIGCONT)

    def _signal_group(self, number: signal.Signals) -> None:
        if self._subprocess:
            self._subprocess.signal_group(number)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def restart_ended(processes: Iterable[ManagedProcess]) -> None:
    """Start again, and say so, whichever of them is not running."""
    for process in processes:
        if not process.running:
            log.warning("%s ended with %s; starting it again", process.name, process.returncode)
            process.spawn()
