"""The handler `exec`: run an allowed program in a folder of its own. Acts.

A sync handler: the pipes and the process are waited for in a thread, the same way on every event
loop, and the stop is seen by looking.
"""

import math
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from asyncjob import Fail, JobContext
from asyncjob.app import Category
from asyncjob_worker.builtin.errors import ProgramFailedError, StoppedError, TimedOutError
from asyncjob_worker.builtin.programs.allowed import ProgramRefusedError, Programs
from asyncjob_worker.builtin.programs.payload import ExecCall, ExecResult, output_of
from asyncjob_worker.builtin.programs.running import Ended, Order, run

LAST_WORDS = 1024


def exec_handler(programs: Programs) -> Callable[[JobContext, ExecCall], ExecResult]:
    """Return the handler for the programs that may be run."""

    def execute(job: JobContext, call: ExecCall) -> ExecResult:
        """Run a program and return its output if it ends with 0."""
        with tempfile.TemporaryDirectory(prefix="exec-", ignore_cleanup_errors=True) as folder:
            order = _order(programs, call, folder)
            is_over = _timer(call.timeout_seconds)
            ended = _run(order, lambda: job.cancelled or is_over())
        if job.cancelled:
            raise StoppedError
        if ended.was_stopped:
            raise TimedOutError(f"{call.argv[0]} took longer than {call.timeout_seconds:g} s")
        return _result(call, ended)

    return execute


def _order(programs: Programs, call: ExecCall, folder: str) -> Order:
    try:
        programs.check(call.argv)
        env = programs.environment(call.env, folder)
    except ProgramRefusedError as refused:
        raise Fail(str(refused), category=Category.PERMISSION) from refused
    stdin = call.stdin.encode()
    return Order(call.argv, env, folder, stdin, keep=call.max_output_bytes, tail=LAST_WORDS)


def _timer(seconds: float | None) -> Callable[[], bool]:
    """Return what says whether so many seconds have passed since now."""
    end = math.inf if seconds is None else time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def _run(order: Order, should_stop: Callable[[], bool]) -> Ended:
    try:
        return run(order, should_stop)
    except FileNotFoundError as error:
        missing = order.argv[0]
        if Path(missing).exists():
            missing = f"what {missing} needs to run (the interpreter in its first line)"
        message = f"{missing} is not in this worker's image"
        raise Fail(message, category=Category.NOT_FOUND) from error
    except PermissionError as error:
        message = f"{order.argv[0]} may not be run by this worker's user"
        raise Fail(message, category=Category.PERMISSION) from error


def _result(call: ExecCall, ended: Ended) -> ExecResult:
    if ended.exit_code:
        raise ProgramFailedError(f"{call.argv[0]} {_end(ended.exit_code)}: {ended.last_words}")
    return ExecResult(
        exit_code=ended.exit_code,
        stdout=output_of(ended.stdout, call.max_output_bytes),
        stderr=output_of(ended.stderr, call.max_output_bytes),
        seconds=ended.seconds,
    )


def _end(code: int) -> str:
    if code > 0:
        return f"ended with {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:  # Python has no names for most real-time signals
        return f"was ended by signal {-code}"
