"""`redrive` and `dismiss`: dead letters, one by one or all that match."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

from asyncjob.cli.bulk import Deed, question, summary
from asyncjob.cli.commands.each import each
from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.filters import all_of, filtered, is_all
from asyncjob.cli.lazy import SectionedCommand
from asyncjob.cli.naming import Name
from asyncjob.cli.place import Place, placed
from asyncjob.cli.screen import Format, Screen, note, shown
from asyncjob.cli.world import World
from asyncjob.client.interface import Jobs
from asyncjob.rest.selection import BULK_MAX, BulkReport, Selection

Callback = Callable[..., Any]

_OPTIONS: Final = (
    click.argument("names", nargs=-1, type=Name(), metavar="[JOB...]"),
    filtered(phases=False),
    click.option("--all", "every", is_flag=True, help="All dead letters, where no filter says."),
    click.option(
        "--limit",
        type=click.IntRange(1, BULK_MAX),
        default=100,
        show_default=True,
        help="So many at most, oldest first.",
    ),
    click.option("--dry-run", is_flag=True, help="Only say which they would be."),
    click.option("--yes", "-y", is_flag=True, help="Do not ask."),
    shown(),
    placed,
    click.pass_obj,
)


_options: Final = all_of(_OPTIONS)


@dataclass(frozen=True)
class _Ask:
    """What was asked for."""

    deed: Deed
    names: Sequence[str]
    selection: Selection
    every: bool
    limit: int
    dry_run: bool
    yes: bool

    def check(self) -> None:
        """Refuse what is not clear; nothing has been done then."""
        filtered_out = not is_all(self.selection)
        if self.names and (filtered_out or self.every):
            raise click.UsageError("give jobs by name, or filters, not both")
        if not (self.names or filtered_out or self.every):
            raise click.UsageError("which? Give jobs by name, a filter, or --all")
        if self.names and self.dry_run:
            raise click.UsageError("--dry-run goes with filters")

    def many(self, jobs: Jobs, *, dry_run: bool) -> BulkReport:
        """Do it to all that match, or only say which."""
        act = jobs.redrive_many if self.deed is Deed.REDRIVE else jobs.dismiss_many
        return act(self.selection, limit=self.limit, dry_run=dry_run)


@click.command(cls=SectionedCommand)
@_options
def redrive(world: World, *, place: Place, screen: Screen, **asked: Any) -> int:
    """Give dead letters a fresh start: all retries anew, the same job.

    By name, or all that match the filters, oldest first. Correct the cause before.
    """
    return _do(world, place, screen, _Ask(Deed.REDRIVE, **asked))


@click.command(cls=SectionedCommand)
@_options
def dismiss(world: World, *, place: Place, screen: Screen, **asked: Any) -> int:
    """Give dead letters up for good: they become Cancelled, and retention removes them.

    By name, or all that match the filters, oldest first. It cannot be taken back.
    """
    return _do(world, place, screen, _Ask(Deed.DISMISS, **asked))


def _do(world: World, place: Place, screen: Screen, ask: _Ask) -> int:
    ask.check()
    with world.connect(place) as jobs:
        if ask.names:
            return _one_by_one(jobs, screen, ask)
        if not (ask.yes or ask.dry_run) and not _agreed(jobs, ask):
            return ExitCode.OK
        report = ask.many(jobs, dry_run=ask.dry_run)
    return _tell(report, screen, ask)


def _one_by_one(jobs: Jobs, screen: Screen, ask: _Ask) -> ExitCode:
    act = jobs.redrive if ask.deed is Deed.REDRIVE else jobs.dismiss
    said, code = each(ask.names, act)
    if screen.for_people:
        for job in said:
            screen.line(f"{job.id} {ask.deed.being}")
    elif said:
        screen.answers(said, one=len(said) == 1)
    return code


def _agreed(jobs: Jobs, ask: _Ask) -> bool:
    """Ask the person in front of the terminal; where there is nobody to ask, refuse."""
    if not seen():
        raise click.UsageError(
            f"nobody can be asked here: say --yes to {ask.deed.value} them, or --dry-run"
        )
    preview = ask.many(jobs, dry_run=True)
    if not preview.done:
        note("no dead letters match")
        return False
    return click.confirm(question(ask.deed, preview), err=True)


def seen() -> bool:
    """Return whether a person sits in front of a terminal."""
    return sys.stdin.isatty()


def _tell(report: BulkReport, screen: Screen, ask: _Ask) -> ExitCode:
    if screen.format is Format.NAME:
        screen.names(report.done)
    elif screen.for_people:
        for name in report.done if ask.dry_run else ():
            screen.line(name)
    else:
        screen.answers([report], one=True)
    for failure in report.failed:
        note(f"error: {failure.id}: {failure.detail}")
    note(summary(ask.deed, report))
    return ExitCode.FAILED if report.failed else ExitCode.OK
