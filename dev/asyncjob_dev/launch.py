"""Starts a command that dies with the process that started it.

Run as its own program, `python -m asyncjob_dev.launch <parent pid> -- command …`, so that
nothing has to run between fork and exec in a program with threads. It must import the standard
library only: it is started by file name with an isolated interpreter.

On Linux the kernel does it (PR_SET_PDEATHSIG survives exec), and the command takes this process's
place. Beware: the kernel sends that signal when the *thread* that forked ends, not the process;
`asyncjob_dev.process` therefore forks everything from one thread that never ends. Elsewhere this
process stays, passes SIGTERM on and looks every second whether its parent is still there.
"""

import ctypes
import os
import signal
import subprocess
import sys
from types import FrameType

PR_SET_PDEATHSIG = 1
LOOK_INTERVAL = 1.0
USAGE = "usage: launch [--watch] <parent pid> -- command [argument …]"


def main(arguments: list[str]) -> int:
    """Run the command; returns only where it could not be exec'ed or has to be watched."""
    watch = bool(arguments) and arguments[0] == "--watch"
    rest = arguments[1:] if watch else arguments
    if len(rest) < 3 or not rest[0].isdigit() or rest[1] != "--":  # noqa: PLR2004
        return _complain(USAGE, 2)
    parent, command = int(rest[0]), rest[2:]
    try:
        if watch or sys.platform != "linux":
            return run_and_watch(parent, command)
        return exec_bound(parent, command)
    except FileNotFoundError:
        return _complain(f"launch: {command[0]}: no such program", 127)
    except OSError as error:
        return _complain(f"launch: {command[0]}: {error.strerror}", 126)


def exec_bound(parent: int, command: list[str]) -> int:
    """Become the command, to be killed by the kernel once the parent's thread ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    # The parent may have died before the line above; then no signal will ever come.
    if os.getppid() == parent:
        os.execvp(command[0], command)  # noqa: S606
    return _complain("launch: the parent is gone", 125)


def run_and_watch(parent: int, command: list[str]) -> int:
    """Run the command beside this process and end it when the parent goes."""
    children: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if children:
            children[0].send_signal(number)
        else:
            early.append(number)

    # First the handler: a signal that comes while the command starts must reach it too.
    signal.signal(signal.SIGTERM, pass_on)
    children.append(child := subprocess.Popen(command))
    for number in early:
        child.send_signal(number)
    while True:
        try:
            return _end_like(child.wait(LOOK_INTERVAL))
        except subprocess.TimeoutExpired:
            if os.getppid() != parent:
                child.kill()


def _end_like(returncode: int) -> int:
    if returncode < 0:
        if -returncode != signal.SIGKILL:
            signal.signal(-returncode, signal.SIG_DFL)
        os.kill(os.getpid(), -returncode)
    return returncode


def _complain(message: str, code: int) -> int:
    sys.stderr.write(f"{message}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
