"""`wait`: until jobs have finished. How it ended is in the exit code."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import click

from asyncjob.cli.durations import DurationParam, precise_duration
from asyncjob.cli.exit_codes import ExitCode, worst_exit_code
from asyncjob.cli.failures import error_message, exit_code_for
from asyncjob.cli.filters import PhaseParam
from asyncjob.cli.job_rows import job_table
from asyncjob.cli.lazy import SectionedCommand
from asyncjob.cli.naming import NameParam, current_program, unique
from asyncjob.cli.place import ConnectionOptions, with_connection
from asyncjob.cli.screen import Printer, note, with_printer
from asyncjob.cli.waiting import FINISHED, TargetState, evaluate_wait, poll_intervals, status_line
from asyncjob.cli.world import CliContext
from asyncjob.client.errors import NotFoundError
from asyncjob.client.interface import Jobs
from asyncjob.errors import AsyncJobError
from asyncjob.rest.job import Job

DEFAULT_TIMEOUT_SECONDS = 3600


@click.command(cls=SectionedCommand)
@click.argument("names", nargs=-1, required=True, type=NameParam(), metavar="JOB...")
@click.option(
    "--for",
    "target",
    type=PhaseParam(FINISHED),
    default=FINISHED,
    show_default=True,
    help="Finished, or come to this phase (or through it).",
)
@click.option(
    "--timeout", type=DurationParam(), default="1h", show_default=True, help="0: look once."
)
@click.option(
    "--poll",
    type=DurationParam(),
    default="1s",
    show_default=True,
    help="Look so often; sooner at first.",
)
@click.option("--quiet", is_flag=True, help="Do not tell on stderr what happens meanwhile.")
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
    """Wait until jobs have finished; the exit code tells how.

    \b
    0  all succeeded (with --for: came to what was waited for)
    3  there is no such job, or no longer
    4  one became a dead letter
    5  one was cancelled
    6  the time was up
    10 with --for: one ended without coming there
    """  # noqa: D301 - click takes a real backspace for "do not wrap"
    with cli.connect(connection) as jobs:
        return wait_for_jobs(
            jobs, cli, WaitRequest(unique(names), target, timeout, poll, quiet), printer
        )


@dataclass(frozen=True)
class WaitRequest:
    """What to wait for, in seconds."""

    names: Sequence[str]
    target: str = FINISHED
    timeout: float = DEFAULT_TIMEOUT_SECONDS
    poll: float = 1.0
    quiet: bool = False
    creation_grace: float = 0.0
    """For so long a job may not exist yet."""


def wait_for_jobs(jobs: Jobs, cli: CliContext, request: WaitRequest, printer: Printer) -> ExitCode:
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
    request: WaitRequest
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
                status_line(self.latest[name]) if name in self.latest else f"{name} was never seen"
            )
            limit = precise_duration(self.request.timeout)
            note(f"error: not {self.request.target} within {limit}: {how} (longer: --timeout)")

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
            note(f"error: {name} ended as {job.phase.value}, and was never {self.request.target}")

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
            note(f"{error_message(error, current_program())}; waiting on")
