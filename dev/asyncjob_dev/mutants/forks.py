"""Children that try one mutant each: bounded in processor time, memory and idleness, and silent."""

import contextlib
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Final, Generic, NoReturn, TypeVar

T = TypeVar("T")

_MEMORY: Final = 3 << 30
_IDLE_SECONDS: Final = 15.0
"""For so long a child may do next to nothing; one that works may take what a busy machine takes."""

_WORK: Final = 300_000_000
"""Nanoseconds of processor time that a child has to have had meanwhile: waiting costs some too."""

_RUNNABLE: Final = "R"


class Verdict(IntEnum):
    """How a child ended; any other end, by a signal or a limit, is that of a mutant noticed."""

    SURVIVED = 0
    KILLED = 1


@dataclass(frozen=True, slots=True)
class Trial(Generic[T]):
    """What is tried, how, and with how much processor time."""

    subject: T
    run: Callable[[], Verdict]
    cpu_seconds: int


@dataclass(slots=True)
class _Child(Generic[T]):
    pid: int
    subject: T
    worked: int = 0
    """Nanoseconds of processor time it had had when it was last seen to work."""

    waited: float = 0.0
    """For how many seconds it has waited since."""

    looked_at: float = field(default_factory=time.monotonic)

    def is_idle(self, seconds: float) -> bool:
        """Return whether it waits for what does not come: a lock, an event, an answer.

        One that waits for a processor only is not idle, however busy the machine is.
        """
        since, self.looked_at = self.looked_at, time.monotonic()
        with contextlib.suppress(OSError):
            about = Path(f"/proc/{self.pid}")
            worked = int((about / "schedstat").read_text().split()[0])
            if worked > self.worked + _WORK:
                self.worked, self.waited = worked, 0.0
            elif (about / "stat").read_text().rpartition(")")[2].split()[0] != _RUNNABLE:
                self.waited += self.looked_at - since
        return self.waited > seconds


def run_forked(
    trials: Iterable[Trial[T]], jobs: int, idle_seconds: float = _IDLE_SECONDS
) -> Iterator[tuple[T, Verdict]]:
    """Run each trial in a child of its own, `jobs` at a time; give out what has ended."""
    waiting = iter(trials)
    running: dict[int, _Child[T]] = {}
    while True:
        while len(running) < jobs and (trial := next(waiting, None)) is not None:
            pid = _start(trial)
            running[os.pidfd_open(pid)] = _Child(pid, trial.subject)
        if not running:
            return
        ended, _, _ = select.select(list(running), [], [], 1.0)
        for handle, child in list(running.items()):
            if handle not in ended:
                if not child.is_idle(idle_seconds):
                    continue
                os.kill(child.pid, signal.SIGKILL)
            _, status = os.waitpid(child.pid, 0)
            os.close(handle)
            del running[handle]
            survived = os.waitstatus_to_exitcode(status) == Verdict.SURVIVED
            yield child.subject, Verdict.SURVIVED if survived else Verdict.KILLED


def _start(trial: Trial[T]) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if not pid:
        _run_child(trial)
    return pid


def _run_child(trial: Trial[T]) -> NoReturn:
    verdict = Verdict.KILLED
    with contextlib.suppress(BaseException):
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (trial.cpu_seconds, trial.cpu_seconds + 2))
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
        verdict = trial.run()
    os._exit(verdict)
