"""The handler `exec`: runs an allowed program in a folder of its own.

With its payload and result, and the allow-list of programs and variables. It is a sync handler: a
thread waits for the pipes and the process, the same way with every event loop, and polls for the
stop.
"""

import math
import signal
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from asyncjob import Fail, JobContext
from asyncjob.app import Category
from asyncjob_worker.builtin.errors import ProgramFailedError, StoppedError, TimedOutError
from asyncjob_worker.builtin.exec_program import ProgramEnd, ProgramRun, run_program
from asyncjob_worker.builtin.model import BuiltInModel, Head, fit_json

STDERR_TAIL_BYTES = 1024


class ProgramRefusedError(Exception):
    """The program, or a variable for it, is not in the allow-list."""


@dataclass(frozen=True, slots=True)
class ProgramAllowList:
    """The allow-list of programs and variables.

    `inherited` is the part of the worker's own environment that programs get, `settable` the names
    of variables that jobs may set.
    """

    paths: frozenset[str] = frozenset()
    inherited: Mapping[str, str] = field(default_factory=dict)
    settable: frozenset[str] = frozenset()

    def check(self, argv: Sequence[str]) -> None:
        """Raise ProgramRefusedError unless exactly this path is listed."""
        if argv[0] not in self.paths:
            raise ProgramRefusedError(
                f"the worker may not run {argv[0]}: ASYNCJOB_EXEC_ALLOW does not list it"
            )

    def environment(self, requested: Mapping[str, str], folder: str) -> dict[str, str]:
        """Return the program's environment; raises ProgramRefusedError for a variable not listed.

        Variables are listed because they can make an allowed program run another (LD_PRELOAD, PATH,
        GIT_SSH_COMMAND, …).
        """
        refused = sorted(requested.keys() - self.settable)
        if refused:
            raise ProgramRefusedError(
                f"env.{refused[0]}: jobs may not set it, ASYNCJOB_EXEC_JOB_ENV does not list it"
            )
        return {"HOME": folder, "TMPDIR": folder, **self.inherited, **requested}


def _no_null(text: str) -> str:
    if "\0" in text:
        raise ValueError("a null character cannot be passed to a program")
    return text


Argument = Annotated[str, Field(max_length=32_768), AfterValidator(_no_null)]


class ExecCall(BuiltInModel):
    """What to run."""

    argv: list[Argument] = Field(min_length=1, max_length=256)
    """The program by its absolute path, then its arguments. No shell reads them."""

    stdin: str = Field(default="", max_length=262_144)
    env: dict[Argument, Argument] = Field(default_factory=dict, max_length=64)
    timeout_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """None leaves it to the job's execution timeout."""

    max_output_bytes: int = Field(default=32 * 1024, ge=0, le=96 * 1024)
    """How much of stdout, and how much of stderr, to keep, counted as JSON."""

    @field_validator("argv")
    @classmethod
    def _check_program(cls, argv: list[str]) -> list[str]:
        if not argv[0].startswith("/"):
            raise ValueError(f"{argv[0]!r} is not an absolute path: programs are not searched for")
        return argv


class Output(BuiltInModel):
    """The beginning of what a program wrote."""

    text: str
    truncated: bool
    size: int
    """Bytes in all, kept or not."""


class ExecResult(BuiltInModel):
    """How the program ended."""

    exit_code: int
    stdout: Output
    stderr: Output
    seconds: float


def exec_handler(programs: ProgramAllowList) -> Callable[[JobContext, ExecCall], ExecResult]:
    """Return the handler that runs the programs of this list."""

    def execute(job: JobContext, call: ExecCall) -> ExecResult:
        """Run a program and return its output if it ends with 0."""
        with tempfile.TemporaryDirectory(prefix="exec-", ignore_cleanup_errors=True) as folder:
            run = _program_run(programs, call, folder)
            is_over = _deadline(call.timeout_seconds)
            end = _run_or_fail(run, lambda: job.cancelled or is_over())
        if job.cancelled:
            raise StoppedError
        if end.was_stopped:
            raise TimedOutError(f"{call.argv[0]} took longer than {call.timeout_seconds:g} s")
        return _result(call, end)

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
    """Return a function that says whether `seconds` have passed since this call."""
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


def output_of(head: Head, limit: int) -> Output:
    """Return the kept beginning as text; bytes that are not UTF-8 are replaced.

    `limit` is in bytes as JSON.
    """
    decoded = head.data.decode("utf-8", "replace")
    kept = fit_json(decoded, limit + 2)
    return Output(
        text=kept, truncated=head.is_truncated or len(kept) < len(decoded), size=head.size
    )


def _exit_text(code: int) -> str:
    if code > 0:
        return f"ended with {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:  # Python has no names for most real-time signals
        return f"was ended by signal {-code}"
