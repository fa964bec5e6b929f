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
from asyncjob_worker.builtin.programs.allowed import ProgramAllowList, ProgramRefusedError
from asyncjob_worker.builtin.programs.payload import ExecCall, ExecResult, output_of
from asyncjob_worker.builtin.programs.running import ProgramEnd, ProgramRun, run_program

STDERR_TAIL_BYTES = 1024


def exec_handler(programs: ProgramAllowList) -> Callable[[JobContext, ExecCall], ExecResult]:
    """Return the handler for the programs that may be run."""

    def execute(job: JobContext, call: ExecCall) -> ExecResult:
        """Run a program and return its output if it ends with 0."""
        with tempfile.TemporaryDirectory(prefix="exec-", ignore_cleanup_errors=True) as folder:
            order = _program_run(programs, call, folder)
            is_over = _deadline(call.timeout_seconds)
            ended = _run_or_fail(order, lambda: job.cancelled or is_over())
        if job.cancelled:
            raise StoppedError
        if ended.was_stopped:
            raise TimedOutError(f"{call.argv[0]} took longer than {call.timeout_seconds:g} s")
        return _result(call, ended)

    return execute


def _program_run(programs: ProgramAllowList, call: ExecCall, folder: str) -> ProgramRun:
    try:
        programs.check(call.argv)
        env = programs.environment(call.env, folder)
    except ProgramRefusedError as refused:
        raise Fail(str(refused), category=Category.PERMISSION) from refused
    stdin = call.stdin.encode()
    return ProgramRun(
        call.argv,
        env,
        folder,
        stdin,
        keep_bytes=call.max_output_bytes,
        tail_bytes=STDERR_TAIL_BYTES,
    )


def _deadline(seconds: float | None) -> Callable[[], bool]:
    """Return what says whether so many seconds have passed since now."""
    end = math.inf if seconds is None else time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def _run_or_fail(spec: ProgramRun, should_stop: Callable[[], bool]) -> ProgramEnd:
    try:
        return run_program(spec, should_stop)
    except FileNotFoundError as error:
        missing = spec.argv[0]
        if Path(missing).exists():
            missing = f"what {missing} needs to run (the interpreter in its first line)"
        message = f"{missing} is not in this worker's image"
        raise Fail(message, category=Category.NOT_FOUND) from error
    except PermissionError as error:
        message = f"{spec.argv[0]} may not be run by this worker's user"
        raise Fail(message, category=Category.PERMISSION) from error


def _result(call: ExecCall, ended: ProgramEnd) -> ExecResult:
    if ended.exit_code:
        raise ProgramFailedError(
            f"{call.argv[0]} {_exit_text(ended.exit_code)}: {ended.stderr_tail}"
        )
    return ExecResult(
        exit_code=ended.exit_code,
        stdout=output_of(ended.stdout, call.max_output_bytes),
        stderr=output_of(ended.stderr, call.max_output_bytes),
        seconds=ended.seconds,
    )


def _exit_text(code: int) -> str:
    if code > 0:
        return f"ended with {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:  # Python has no names for most real-time signals
        return f"was ended by signal {-code}"
