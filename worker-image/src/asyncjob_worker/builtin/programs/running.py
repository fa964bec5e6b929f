"""One run of a program, from start to the last trace of it."""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from asyncjob_worker.builtin.bounded import Head, Tail
from asyncjob_worker.builtin.programs.group import end_group, has_ended
from asyncjob_worker.builtin.programs.pipes import Pipes

STOP_POLL_SECONDS = 0.1
"""How soon a stop is noticed."""

MAX_FINAL_READS = 1000
"""What a killed group has left in its pipes is far less."""


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """What to run, where, and how much of its output to keep, in bytes."""

    argv: Sequence[str]
    env: Mapping[str, str]
    folder: str
    stdin: bytes
    keep_bytes: int
    tail_bytes: int


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """How it went; the exit code is negative for a signal."""

    exit_code: int
    was_stopped: bool
    stdout: Head
    stderr: Head
    stderr_tail: str
    seconds: float


def run_program(spec: ProgramRun, should_stop: Callable[[], bool]) -> ProgramEnd:
    """Run the program until it ends or should stop; nothing of its group is left afterwards.

    Raises OSError if it cannot be started.
    """
    stdout, stderr, tail = Head(spec.keep_bytes), Head(spec.keep_bytes), Tail(spec.tail_bytes)

    def on_stderr(data: bytes) -> None:
        stderr.add(data)
        tail.add(data)

    begin = time.monotonic()
    process = _start_process(spec)
    pipes = Pipes(process, spec.stdin, stdout.add, on_stderr)
    try:
        was_stopped = _move_data(process, pipes, should_stop)
    finally:
        code = end_group(process)
        _drain_pipes(pipes)
        pipes.close()
    return ProgramEnd(
        code, was_stopped, stdout, stderr, tail.text, round(time.monotonic() - begin, 3)
    )


def _start_process(spec: ProgramRun) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(spec.argv),
        cwd=spec.folder,
        env=dict(spec.env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _move_data(
    process: subprocess.Popen[bytes], pipes: Pipes, should_stop: Callable[[], bool]
) -> bool:
    """Move data until the program ends; return whether it has to be stopped instead."""
    while not has_ended(process):
        if should_stop():
            return True
        if pipes.are_open:
            pipes.serve(STOP_POLL_SECONDS)
        else:
            time.sleep(STOP_POLL_SECONDS)
    return False


def _drain_pipes(pipes: Pipes) -> None:
    """Take what is still in the pipes; whoever escaped from the group is not waited for."""
    for _ in range(MAX_FINAL_READS):
        if not pipes.are_open or not pipes.serve(0):
            return
