"""`wait`: polls jobs until they have finished or reached a phase.

The exit code says how they ended. The decision is a pure function of the job.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from typing import Final

import click

from asyncjob.backoff import backoff_delay
from asyncjob.cli.command_classes import SectionedCommand
from asyncjob.cli.connection import ConnectionOptions, with_connection
from asyncjob.cli.context import CliContext
from asyncjob.cli.durations import DurationParam, precise_duration
from asyncjob.cli.error_messages import error_message, exit_code_for
from asyncjob.cli.exit_codes import ExitCode, worst_exit_code
from asyncjob.cli.input.filters import PhaseParam
from asyncjob.cli.input.resource_names import NameParam, current_program, unique
from asyncjob.cli.output.job_table import job_table, progress_percent, status_detail
from asyncjob.cli.output.printer import Printer, note, with_printer
from asyncjob.client.api import Jobs
from asyncjob.client.errors import NotFoundError
from asyncjob.errors import AsyncJobError, explain_command
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.jobs import Job

FINISHED: Final = "finished"
FIRST_POLL_SECONDS: Final = 0.2
"""Chosen, not measured: a person does not notice it, and the pauses grow from there."""

_PHASE_EXIT_CODES: Final = {
    Phase.SUCCEEDED: ExitCode.OK,
    Phase.DEAD_LETTER: ExitCode.DEAD_LETTER,
    Phase.CANCELLED: ExitCode.CANCELLED,
}


class TargetState(StrEnum):
    """Whether what is waited for has come."""

    NOT_YET = "not yet"
    REACHED = "yes"
    UNREACHABLE = "never"


@dataclass(frozen=True, slots=True)
class WaitStatus:
    """Whether to go on waiting, and with which code to end."""

    state: TargetState
    code: ExitCode = ExitCode.OK

    @property
    def decided(self) -> bool:
        """Return whether there is nothing to wait for any more."""
        return self.state is not TargetState.NOT_YET


STILL_WAITING: Final = WaitStatus(TargetState.NOT_YET)


def evaluate_wait(job: Job, target: str) -> WaitStatus:
    """Return whether the job has come to `finished`, or to or through the phase named."""
    if target == FINISHED:
        return (
            WaitStatus(TargetState.REACHED, _PHASE_EXIT_CODES[job.phase])
            if job.finished
            else STILL_WAITING
        )
    if job.phase == target or target in _phases_passed(job):
        return WaitStatus(TargetState.REACHED)
    if not job.finished:
        return STILL_WAITING
    code = _PHASE_EXIT_CODES[job.phase]
    return WaitStatus(TargetState.UNREACHABLE, ExitCode.OTHER_END if code is ExitCode.OK else code)


def _phases_passed(job: Job) -> set[str]:
    """Return the phases it has been in; a claim is told by the attempt, not by the history."""
    run = {Phase.RUNNING.value} if job.attempt else set()
    return {one.phase for one in job.history} | run


def poll_intervals(longest: float) -> Iterator[float]:
    """Yield how long to pause between looks: short at first, since most jobs are."""
    for looks in count(1):
        yield backoff_delay(looks, FIRST_POLL_SECONDS, longest)


def status_line(job: Job) -> str:
    """Return how the job stands, in one line: `report-42 Running 40% rendering`."""
    return " ".join(
        filter(None, (job.id, job.phase.value, progress_percent(job), status_detail(job)))
    )


DEFAULT_TIMEOUT_SECONDS = 3600


@click.command(cls=SectionedCommand)
@click.argument("names", nargs=-1, required=True, type=NameParam(), metavar="JOB...")
@click.option(
    "--for",
    "target",
    type=PhaseParam(FINISHED),
    default=FINISHED,
    show_default=True,
    help="`finished`, or a phase that the job has to reach or pass.",
)
@click.option(
    "--timeout", type=DurationParam(), default="1h", show_default=True, help="0: check once."
)
@click.option(
    "--poll",
    type=DurationParam(),
    default="1s",
    show_default=True,
    help="Polling interval; shorter at first.",
)
@click.option("--quiet", is_flag=True, help="Do not report changes on stderr.")
@with_printer()
@with_connection
@click.pass_obj
def wait(
    cli: CliContext,
    *,
    names: Sequence[str],
    target: str,
    timeout: int,
    poll: int,
    quiet: bool,
    connection: ConnectionOptions,
    printer: Printer,
) -> int:
    """Wait until jobs have finished; the exit code reports how.

    \b
    0  all succeeded (with --for: reached the phase)
    3  a job does not exist, or was deleted
    4  a job became a dead letter
    5  a job was cancelled
    6  timed out
    10 with --for: a job finished without reaching the phase
    """  # noqa: D301 - click takes a real backspace for "do not wrap"
    with cli.connect(connection) as jobs:
        return wait_for_jobs(
            jobs, cli, WaitOptions(unique(names), target, timeout, poll, quiet), printer
        )


@dataclass(frozen=True)
class WaitOptions:
    """What to wait for, in seconds."""

    names: Sequence[str]
    target: str = FINISHED
    timeout: float = DEFAULT_TIMEOUT_SECONDS
    poll: float = 1.0
    quiet: bool = False
    creation_grace: float = 0.0
    """Seconds for which a job may not exist yet."""


def wait_for_jobs(jobs: Jobs, cli: CliContext, request: WaitOptions, printer: Printer) -> ExitCode:
    """Wait, show the jobs as they are then, and return the exit code."""
    watch, start, pauses = _Waiter(jobs, request), cli.monotonic(), poll_intervals(request.poll)
    while watch.poll(waited := cli.monotonic() - start) and waited < request.timeout:
        cli.sleep(min(next(pauses), request.timeout - waited))
    watch.give_up()
    _print_jobs(list(watch.latest.values()), cli, printer, one=len(request.names) == 1)
    return worst_exit_code(watch.codes.values())


def _print_jobs(found: Sequence[Job], cli: CliContext, printer: Printer, *, one: bool) -> None:
    if printer.human_readable:
        if found:
            printer.table(job_table(found, cli.now(), wide=printer.wide))
    elif found or not one:
        printer.objects(found, one=one)


@dataclass
class _Waiter:
    """The jobs that are waited for, as last seen."""

    jobs: Jobs
    request: WaitOptions
    latest: dict[str, Job] = field(default_factory=dict)
    codes: dict[str, ExitCode] = field(default_factory=dict)
    last_error: str = ""

    def poll(self, waited: float) -> bool:
        """Look at those that are not settled; return whether any is left to wait for."""
        for name in self._pending():
            try:
                self._update(name, self.jobs.get(name))
            except NotFoundError as error:
                if name in self.latest or waited >= self.request.creation_grace:
                    self._on_missing_job(name, error)
            except AsyncJobError as error:
                self._on_error(error)
        return bool(self._pending())

    def give_up(self) -> None:
        """Say which have not come there in time."""
        for name in self._pending():
            self.codes[name] = ExitCode.TIMEOUT
            how = (
                status_line(self.latest[name])
                if name in self.latest
                else f"state of {name} unknown"
            )
            limit = precise_duration(self.request.timeout)
            late = f"not {self.request.target} within {limit}: {how}"
            note(f"error: {late} (longer: --timeout; {explain_command('wait-timeout')})")

    def _pending(self) -> list[str]:
        return [name for name in self.request.names if name not in self.codes]

    def _update(self, name: str, job: Job) -> None:
        before, self.latest[name], self.last_error = self.latest.get(name), job, ""
        if not self.request.quiet and (before is None or status_line(before) != status_line(job)):
            note(status_line(job))
        verdict = evaluate_wait(job, self.request.target)
        if verdict.decided:
            self.codes[name] = verdict.code
        if verdict.state is TargetState.UNREACHABLE:
            note(f"error: {name} ended as {job.phase.value} without reaching {self.request.target}")

    def _on_missing_job(self, name: str, error: AsyncJobError) -> None:
        gone = f"{name} was deleted meanwhile"
        note(f"error: {gone if name in self.latest else error_message(error, current_program())}")
        self.codes[name] = exit_code_for(error)

    def _on_error(self, error: AsyncJobError) -> None:
        """Wait on while a server is away; raise what will not pass."""
        if not error.retryable:
            raise error
        if str(error) != self.last_error:
            self.last_error = str(error)
            note(f"{error_message(error, current_program())}; still waiting")
