"""Starts a child's process, and sees its end.

The process gets one end of a socket and nothing else of the worker's: no other file descriptor, an
empty standard input, a session of its own. It is started fresh, never forked from a process with
threads, and from the thread that lives longest: Linux ends a child with the *thread* it came from.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Final

CHILD_MODULE: Final = "asyncjob_worker.isolation.child"


class ProcessGroup:
    """One child process, the leader of its group; whatever is left of the group ends with it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._reap_lock = threading.Lock()
        self.exited: asyncio.Future[int] = self._loop.create_future()
        name = f"reaper-{process.pid}"
        threading.Thread(target=self._await_exit, name=name, daemon=True).start()

    @property
    def pid(self) -> int:
        """Its process ID."""
        return self._process.pid

    def kill(self) -> None:
        """Kill it, and whatever it has started."""
        with self._reap_lock:
            if self._process.returncode is None:
                _kill_group(self.pid)

    def _await_exit(self) -> None:
        if hasattr(os, "waitid"):
            # Not reaped yet, so that its group's number cannot be another's when it is killed.
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            with self._reap_lock:
                _kill_group(self.pid)
                self._process.wait()
        code = self._process.wait()
        with suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(self._set_exited, code)
        _reap_orphans(self.pid)

    def _set_exited(self, code: int) -> None:
        if not self.exited.done():
            self.exited.set_result(code)


def spawn() -> tuple[ProcessGroup, socket.socket]:
    """Start a child; returns it with the worker's end of the socket. Raises OSError."""
    ours, theirs = socket.socketpair()
    with theirs:
        descriptor = theirs.fileno()
        try:
            process = subprocess.Popen(
                # -P: the current folder is not yet on the path, as in the worker at its start.
                [sys.executable, "-P", "-m", CHILD_MODULE, str(descriptor), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                pass_fds=(descriptor,),
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise
    return ProcessGroup(process), ours


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _reap_orphans(group: int) -> None:
    """Reap what it had started, where that falls to us: as a container's first process."""
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-group, 0)
