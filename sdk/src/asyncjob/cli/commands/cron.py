"""`cron list|get|trigger|suspend|resume|backfill`."""

from collections.abc import Callable, Sequence

import click

from asyncjob.cli import offering
from asyncjob.cli.commands.wait import Wish, wait_for
from asyncjob.cli.cron_sheet import cron_sheet
from asyncjob.cli.durations import Moment
from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.job_sheet import Look
from asyncjob.cli.lazy import SectionedCommand, SectionedGroup
from asyncjob.cli.naming import Name, program
from asyncjob.cli.place import Place, placed, placed_anywhere
from asyncjob.cli.screen import Format, Screen, note, shown
from asyncjob.cli.surroundings_rows import cron_table
from asyncjob.cli.world import World
from asyncjob.client.interface import Jobs
from asyncjob.models.cron import MAX_ACTIVE, RUNS
from asyncjob.rest.surroundings import CronJobInfo

PATIENCE = 30.0
"""Seconds within which the operator creates what a trigger asks for."""

NAME = click.argument("name", type=Name(offering.schedules), metavar="NAME")


@click.group(cls=SectionedGroup)
def cron() -> None:
    """Look at schedules (AsyncCronJobs) and act on them."""


@cron.command("list", cls=SectionedCommand)
@shown()
@placed_anywhere
@click.pass_obj
def list_(world: World, *, place: Place, screen: Screen) -> None:
    """List schedules, with their next run and what they did last."""
    with world.overview(place) as jobs:
        found = jobs.cron_jobs()
    if screen.for_people:
        _show(found, world, place, screen)
    else:
        screen.answers(found)


def _show(found: Sequence[CronJobInfo], world: World, place: Place, screen: Screen) -> None:
    if found:
        screen.table(cron_table(found, world.now(), everywhere=place.everywhere))
    else:
        note("no schedules here")


@cron.command(cls=SectionedCommand)
@NAME
@shown()
@placed
@click.pass_obj
def get(world: World, *, name: str, place: Place, screen: Screen) -> None:
    """Show one schedule: when, what, what it has done."""
    with world.connect(place) as jobs:
        found = jobs.cron_job(name)
    if screen.format is Format.TABLE:
        for line in cron_sheet(found, Look(world.now(), program(), screen.colour, screen.width)):
            screen.line(line)
    elif screen.for_people:
        _show([found], world, place, screen)
    else:
        screen.answers([found], one=True)


@cron.command(cls=SectionedCommand)
@NAME
@click.option("--wait", is_flag=True, help="Until the run has finished.")
@shown()
@placed
@click.pass_obj
def trigger(world: World, *, name: str, wait: bool, place: Place, screen: Screen) -> int:
    """Ask for one run now, whatever the schedule says and whether it is suspended."""
    with world.connect(place) as jobs:
        made = jobs.trigger(name)
        if wait:
            return wait_for(jobs, world, Wish([made.id], patience=PATIENCE), screen)
    if screen.for_people:
        screen.line(f"{made.id} will run now")
    else:
        screen.answers([made], one=True)
    return ExitCode.OK


@cron.command(cls=SectionedCommand)
@NAME
@shown()
@placed
@click.pass_obj
def suspend(world: World, *, name: str, place: Place, screen: Screen) -> None:
    """Keep a schedule from creating jobs; times that pass are not made up for."""
    _act(world, place, screen, lambda jobs: jobs.suspend_cron_job(name), "suspended")


@cron.command(cls=SectionedCommand)
@NAME
@shown()
@placed
@click.pass_obj
def resume(world: World, *, name: str, place: Place, screen: Screen) -> None:
    """Let a suspended schedule create jobs, from its next time on."""
    _act(world, place, screen, lambda jobs: jobs.resume_cron_job(name), "resumed")


def _act(
    world: World, place: Place, screen: Screen, act: Callable[[Jobs], CronJobInfo], word: str
) -> None:
    with world.connect(place) as jobs:
        done = act(jobs)
    if screen.for_people:
        screen.line(f"schedule {done.name} {word}")
    else:
        screen.answers([done], one=True)


@cron.command(cls=SectionedCommand)
@NAME
@click.option("--from", "start", type=Moment(), required=True, help="First time: -7d, RFC 3339.")
@click.option("--to", "end", type=Moment(), required=True, help="Last time.")
@click.option(
    "--limit",
    type=click.IntRange(1, RUNS),
    default=100,
    show_default=True,
    help="A range that holds more runs is refused whole.",
)
@click.option(
    "--max-active",
    type=click.IntRange(1, MAX_ACTIVE),
    default=1,
    show_default=True,
    help="So many of its runs at once.",
)
@click.option("--replace", is_flag=True, help="Even if an earlier backfill is under way.")
@placed
@click.pass_obj
def backfill(
    world: World,
    *,
    name: str,
    start: str,
    end: str,
    limit: int,
    max_active: int,
    replace: bool,
    place: Place,
) -> None:
    """Create the runs of times gone by, once each."""
    if start >= end:
        raise click.UsageError("--to has to be later than --from")
    with world.connect(place) as jobs:
        jobs.backfill(name, start, end, limit=limit, max_active=max_active, replace=replace)
    click.echo(f"schedule {name} will create the runs from {start} to {end}")
    note(f"{program()} cron get {name} shows how far it is")
