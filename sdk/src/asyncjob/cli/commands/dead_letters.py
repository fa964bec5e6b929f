"""`redrive` and `dismiss`.

Dead letters by name, or all that match filters, after a preview and a confirmation.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import click

from asyncjob.cli.command_classes import SectionedCommand
from asyncjob.cli.connection import ConnectionOptions, with_connection
from asyncjob.cli.context import CliContext
from asyncjob.cli.error_messages import for_each
from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.input.filters import combine_options, selects_all, with_selection
from asyncjob.cli.input.resource_names import NameParam
from asyncjob.cli.output.printer import OutputFormat, Printer, note, with_printer
from asyncjob.client.api import Jobs
from asyncjob.rest.listing import MAX_BULK_JOBS, BulkReport, Selection

MAX_NAMED = 3
"""Maximum number of names in a question; the rest is counted."""


class BulkAction(StrEnum):
    """What is done to dead letters."""

    REDRIVE = "redrive"
    DISMISS = "dismiss"

    @property
    def past_participle(self) -> str:
        """Return the participle."""
        return "redriven" if self is BulkAction.REDRIVE else "dismissed"

    @property
    def progressive(self) -> str:
        """Return the wording once the control field is written."""
        return f"is being {self.past_participle}"


def count_dead_letters(count: int) -> str:
    """Return them counted."""
    return f"{count} dead letter" if count == 1 else f"{count} dead letters"


def confirmation_question(action: BulkAction, preview: BulkReport) -> str:
    """Return what a person is asked."""
    some = ", ".join(preview.done[:MAX_NAMED])
    more = len(preview.done) - MAX_NAMED
    which = f"{some} and {more} more" if more > 0 else some
    held_back = preview.matched - len(preview.done) - len(preview.failed)
    rest = f"; {held_back} more match, see --limit" if held_back > 0 else ""
    return f"{action.value.capitalize()} {count_dead_letters(len(preview.done))} ({which}{rest})?"


def bulk_summary(action: BulkAction, report: BulkReport) -> str:
    """Return what was done, in one line."""
    if not report.matched:
        return "no dead letters match"
    done = count_dead_letters(len(report.done))
    would = f"would {action.value} {done}" if report.dry_run else f"{action.past_participle} {done}"
    left = report.matched - len(report.done) - len(report.failed)
    parts = [would]
    if report.failed:
        parts.append(f"{len(report.failed)} failed")
    if left > 0:
        parts.append(f"{left} more match: repeat the command, or raise --limit")
    return "; ".join(parts)


_OPTIONS: Final = (
    click.argument("names", nargs=-1, type=NameParam(), metavar="[JOB...]"),
    with_selection(phases=False),
    click.option("--all", "every", is_flag=True, help="All dead letters; instead of a filter."),
    click.option(
        "--limit",
        type=click.IntRange(1, MAX_BULK_JOBS),
        default=100,
        show_default=True,
        help="Maximum number of jobs, oldest first.",
    ),
    click.option("--dry-run", is_flag=True, help="Only show which jobs match."),
    click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation."),
    with_printer(),
    with_connection,
    click.pass_obj,
)


_options: Final = combine_options(_OPTIONS)


@dataclass(frozen=True)
class _BulkRequest:
    """What was asked for."""

    action: BulkAction
    names: Sequence[str]
    selection: Selection
    every: bool
    limit: int
    dry_run: bool
    yes: bool

    def validate(self) -> None:
        """Refuse what is not clear; nothing has been done then."""
        filtered_out = not selects_all(self.selection)
        if self.names and (filtered_out or self.every):
            raise click.UsageError("specify job names or filters, not both")
        if not (self.names or filtered_out or self.every):
            raise click.UsageError("missing argument JOB (or use a filter, or --all)")
        if self.names and self.dry_run:
            raise click.UsageError("--dry-run needs filters or --all instead of job names")

    def apply_to_matching(self, jobs: Jobs, *, dry_run: bool) -> BulkReport:
        """Do it to all that match, or only say which."""
        act = jobs.redrive_many if self.action is BulkAction.REDRIVE else jobs.dismiss_many
        return act(self.selection, limit=self.limit, dry_run=dry_run)


@click.command(cls=SectionedCommand)
@_options
def redrive(
    cli: CliContext, *, connection: ConnectionOptions, printer: Printer, **options: Any
) -> int:
    """Run dead letters again, with fresh retries.

    Specify names, or filters to redrive all matches, oldest first. Fix the cause of the failure
    first.
    """
    return _run(cli, connection, printer, _BulkRequest(BulkAction.REDRIVE, **options))


@click.command(cls=SectionedCommand)
@_options
def dismiss(
    cli: CliContext, *, connection: ConnectionOptions, printer: Printer, **options: Any
) -> int:
    """Give up dead letters: they become Cancelled, and retention deletes them.

    Specify names, or filters to dismiss all matches, oldest first. This cannot be undone.
    """
    return _run(cli, connection, printer, _BulkRequest(BulkAction.DISMISS, **options))


def _run(
    cli: CliContext, connection: ConnectionOptions, printer: Printer, request: _BulkRequest
) -> int:
    request.validate()
    with cli.connect(connection) as jobs:
        if request.names:
            return _one_by_one(jobs, printer, request)
        if not (request.yes or request.dry_run) and not _is_confirmed(jobs, request):
            return ExitCode.OK
        report = request.apply_to_matching(jobs, dry_run=request.dry_run)
    return _print_report(report, printer, request)


def _one_by_one(jobs: Jobs, printer: Printer, request: _BulkRequest) -> ExitCode:
    act = jobs.redrive if request.action is BulkAction.REDRIVE else jobs.dismiss
    changed, code = for_each(request.names, act)
    printer.outcomes(changed, lambda job: f"{job.id} {request.action.progressive}")
    return code


def _is_confirmed(jobs: Jobs, request: _BulkRequest) -> bool:
    """Ask for confirmation on a terminal; raise UsageError without one."""
    if not stdin_is_terminal():
        raise click.UsageError(
            f"stdin is not a terminal: pass --yes to {request.action.value} the jobs, or --dry-run"
        )
    preview = request.apply_to_matching(jobs, dry_run=True)
    if not preview.done:
        refused = [f"{failure.id}: {failure.detail}" for failure in preview.failed]
        note("\n".join(refused) or "no dead letters match")
        return False
    return click.confirm(confirmation_question(request.action, preview), err=True)


def stdin_is_terminal() -> bool:
    """Return whether stdin is a terminal."""
    return sys.stdin.isatty()


def _print_report(report: BulkReport, printer: Printer, request: _BulkRequest) -> ExitCode:
    if printer.format is OutputFormat.NAME:
        printer.names(report.done)
    elif printer.human_readable:
        for name in report.done if request.dry_run else ():
            printer.line(name)
    else:
        printer.objects([report], one=True)
    for failure in report.failed:
        note(f"error: {failure.id}: {failure.detail}")
    note(bulk_summary(request.action, report))
    return ExitCode.FAILED if report.failed else ExitCode.OK
