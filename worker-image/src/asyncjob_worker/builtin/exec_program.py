"""One run of a program, from its start until nothing of its process group is left.

The program's own process stays a zombie until its group is killed, so that its process ID cannot
have been reused by then.
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from asyncjob_worker.builtin.model import Head, Tail

CHUNK_BYTES = 64 * 1024

STOP_POLL_SECONDS = 0.1
"""How often the stop is polled while the program runs."""

MAX_FINAL_READS = 1000
"""Reads from the pipes of a killed group; what it can have left in them needs far fewer."""

EXIT_POLL_SECONDS = 0.02
TERM_SECONDS = 2.0
"""Time between SIGTERM and SIGKILL. Less than a drain allows (`--stop-wait`)."""

REAP_SECONDS = 1.0
"""How long to wait for the killed processes of the group to be reaped."""


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
    """How the program ended; the exit code is -N if signal N has ended it."""

    exit_code: int
    was_stopped: bool
    stdout: Head
    stderr: Head
    stderr_tail: str
    seconds: float


def run_program(spec: ProgramRun, should_stop: Callable[[], bool]) -> ProgramEnd:
    """Run the program until it ends or should stop, and leave nothing of its process group.

    Raises OSError if it cannot be started.
    """
    stdout, stderr, tail = Head(spec.keep_bytes), Head(spec.keep_bytes), Tail(spec.tail_bytes)

    def on_stderr(data: bytes) -> None:
        stderr.add(data)
        tail.add(data)

    started = time.monotonic()
    process = _start_process(spec)
    pipes = Pipes(process, spec.stdin, stdout.add, on_stderr)
    try:
        was_stopped = _move_data(process, pipes, should_stop)
    finally:
        code = end_group(process)
        _drain_pipes(pipes)
        pipes.close()
    return ProgramEnd(
        code, was_stopped, stdout, stderr, tail.text, round(time.monotonic() - started, 3)
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


class Pipes:
    """The three pipes of a program, read and written without blocking."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        stdin: bytes,
        on_stdout: Callable[[bytes], None],
        on_stderr: Callable[[bytes], None],
    ) -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._selector = selectors.DefaultSelector()
        self._unwritten = memoryview(stdin)
        self._add(process.stdout, selectors.EVENT_READ, self._reader(on_stdout))
        self._add(process.stderr, selectors.EVENT_READ, self._reader(on_stderr))
        self._add(process.stdin, selectors.EVENT_WRITE, self._write)
        self._files = (process.stdin, process.stdout, process.stderr)

    @property
    def are_open(self) -> bool:
        """Whether the program, or one that it started, still holds any of them."""
        return bool(self._selector.get_map())

    def serve(self, seconds: float) -> bool:
        """Read and write what is ready, after waiting up to `seconds`; return whether any was."""
        ready = self._selector.select(seconds)
        for key, _ in ready:
            key.data(key.fileobj)
        return bool(ready)

    def close(self) -> None:
        """Close all pipes."""
        self._selector.close()
        for file in self._files:
            with suppress(OSError):
                file.close()

    def _add(self, file: IO[bytes], event: int, move: Callable[[IO[bytes]], None]) -> None:
        os.set_blocking(file.fileno(), False)
        self._selector.register(file, event, move)

    def _reader(self, take: Callable[[bytes], None]) -> Callable[[IO[bytes]], None]:
        def read(file: IO[bytes]) -> None:
            data = os.read(file.fileno(), CHUNK_BYTES)
            if data:
                take(data)
            else:
                self._selector.unregister(file)

        return read

    def _write(self, file: IO[bytes]) -> None:
        try:
            self._unwritten = self._unwritten[
                os.write(file.fileno(), self._unwritten[:CHUNK_BYTES]) :
            ]
        except BrokenPipeError:
            self._unwritten = self._unwritten[:0]  # the program has closed its stdin
        if not self._unwritten:
            self._selector.unregister(file)
            file.close()


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
    """Read what is still in the pipes, without waiting for processes that have left the group."""
    for _ in range(MAX_FINAL_READS):
        if not pipes.are_open or not pipes.serve(0):
            return


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether the program has ended; does not reap it."""
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return process.returncode is not None or bool(os.waitid(os.P_PID, process.pid, options))


def end_group(process: subprocess.Popen[bytes], term_seconds: float = TERM_SECONDS) -> int:
    """End the group and reap it; return the program's exit code.

    If the program still runs, it gets SIGTERM and `term_seconds` first.
    """
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
    """Reap what the program has started: orphans are a container's first process's to reap."""
    give_up_at = time.monotonic() + REAP_SECONDS
    with suppress(ChildProcessError):
        while time.monotonic() < give_up_at:
            if os.waitpid(-group, os.WNOHANG) == (0, 0):
                time.sleep(EXIT_POLL_SECONDS)
