"""One run of a program, from start to the last trace of it."""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from asyncjob_worker.builtin.bounded import Head, Tail
from asyncjob_worker.builtin.programs.group import end, has_ended
from asyncjob_worker.builtin.programs.pipes import Pipes

LOOK_SECONDS = 0.1
"""How soon a stop is noticed."""

LAST_READS = 1000
"""What a killed group has left in its pipes is far less."""


@dataclass(frozen=True, slots=True)
class Order:
    """What to run, where, and how much of its output to keep, in bytes."""

    argv: Sequence[str]
    env: Mapping[str, str]
    folder: str
    stdin: bytes
    keep: int
    tail: int


@dataclass(frozen=True, slots=True)
class Ended:
    """How it went; the exit code is negative for a signal."""

    exit_code: int
    was_stopped: bool
    stdout: Head
    stderr: Head
    last_words: str
    seconds: float


def run(order: Order, should_stop: Callable[[], bool]) -> Ended:
    """Run the program until it ends or should stop; nothing of its group is left afterwards.

    Raises OSError if it cannot be started.
    """
    stdout, stderr, tail = Head(order.keep), Head(order.keep), Tail(order.tail)

    def on_stderr(data: bytes) -> None:
        stderr.add(data)
        tail.add(data)

    begin = time.monotonic()
    process = _start(order)
    pipes = Pipes(process, order.stdin, stdout.add, on_stderr)
    try:
        was_stopped = _serve(process, pipes, should_stop)
    finally:
        code = end(process)
        _drain(pipes)
        pipes.close()
    return Ended(code, was_stopped, stdout, stderr, tail.text, round(time.monotonic() - begin, 3))


def _start(order: Order) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(order.argv),
        cwd=order.folder,
        env=dict(order.env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _serve(process: subprocess.Popen[bytes], pipes: Pipes, should_stop: Callable[[], bool]) -> bool:
    """Move data until the program ends; return whether it has to be stopped instead."""
    while not has_ended(process):
        if should_stop():
            return True
        if pipes.are_open:
            pipes.serve(LOOK_SECONDS)
        else:
            time.sleep(LOOK_SECONDS)
    return False


def _drain(pipes: Pipes) -> None:
    """Take what is still in the pipes; whoever escaped from the group is not waited for."""
    for _ in range(LAST_READS):
        if not pipes.are_open or not pipes.serve(0):
            return
