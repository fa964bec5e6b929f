"""The first process of a node: holds its lock, adopts orphans, and takes all along at its end.

When the first process of a process namespace ends, the kernel kills everyone else in it: pods,
shims, containerd. So nothing here has to be stopped one by one, nor can anything be forgotten.
It must import the standard library only: it is started by file name with an isolated interpreter.
"""

import fcntl
import os
import signal
import sys
from types import FrameType

USAGE = "usage: init <lock file> -- command [argument …]"


def main(arguments: list[str]) -> int:
    """Run the command until it ends; returns its exit code."""
    if len(arguments) < 3 or arguments[1] != "--":  # noqa: PLR2004
        sys.stderr.write(f"{USAGE}\n")
        return 2
    lock = os.open(arguments[0], os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    # Whoever looks whether somebody holds it holds it for that moment.
    fcntl.flock(lock, fcntl.LOCK_EX)
    return reap_until_end(start(arguments[2:]))


def start(command: list[str]) -> int:
    """Start the command, which gets the signals that we get; returns its process id."""
    started: list[int] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if not started:
            os._exit(128 + number)
        os.kill(started[0], number)

    # The kernel drops signals to a first process that has no handler for them.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, pass_on)
    started.append(os.posix_spawn(command[0], command, os.environ))
    return started[0]


def reap_until_end(child: int) -> int:
    """Bury whoever dies without a parent, until the child does."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status) & 0xFF


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
