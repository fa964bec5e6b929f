"""`cancel`, `suspend`, `resume`, `priority`, `rerun`: wishes about jobs that there are."""

from collections.abc import Callable, Sequence

import click

from asyncjob.cli.commands.each import each
from asyncjob.cli.commands.wait import Wish, wait_for
from asyncjob.cli.lazy import SectionedCommand
from asyncjob.cli.naming import Name
from asyncjob.cli.place import Place, placed
from asyncjob.cli.screen import Screen, shown
from asyncjob.cli.world import World
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.job import Job

PATIENCE = 30.0
"""Seconds within which the operator creates what is asked for."""

NAMES = click.argument("names", nargs=-1, required=True, type=Name(), metavar="JOB...")


@click.command(cls=SectionedCommand)
@NAMES
@click.option("--cascade", is_flag=True, help="Its unfinished children and dependents, too.")
@click.option("--wait", is_flag=True, help="Until they are cancelled.")
@shown()
@placed
@click.pass_obj
def cancel(
    world: World,
    *,
    names: Sequence[str],
    cascade: bool,
    wait: bool,
    place: Place,
    screen: Screen,
) -> int:
    """Cancel jobs; a dead letter is dismissed.

    A running handler is told, and ended after its grace period. It cannot be taken back.
    """
    with world.connect(place) as jobs:
        said, code = each(names, lambda name: jobs.cancel(name, cascade=cascade))
        if wait and said:
            wish = Wish([job.id for job in said], Phase.CANCELLED)
            return wait_for(jobs, world, wish, screen) or code
    _show(said, screen, cancelled)
    return code


def cancelled(job: Job) -> str:
    """Return what became of the wish."""
    if job.phase is Phase.CANCELLED:
        return "cancelled"
    return "being dismissed" if job.phase is Phase.DEAD_LETTER else "being cancelled"


def _show(found: Sequence[Job], screen: Screen, words: Callable[[Job], str]) -> None:
    if screen.for_people:
        for job in found:
            screen.line(f"{job.id} {words(job)}")
    elif found:
        screen.answers(found, one=len(found) == 1)


@click.command(cls=SectionedCommand)
@NAMES
@shown()
@placed
@click.pass_obj
def suspend(world: World, *, names: Sequence[str], place: Place, screen: Screen) -> int:
    """Keep jobs from being started; an attempt that runs already goes on."""
    with world.connect(place) as jobs:
        said, code = each(names, jobs.suspend)
    _show(said, screen, lambda _: "suspended")
    return code


@click.command(cls=SectionedCommand)
@NAMES
@shown()
@placed
@click.pass_obj
def resume(world: World, *, names: Sequence[str], place: Place, screen: Screen) -> int:
    """Let suspended jobs start."""
    with world.connect(place) as jobs:
        said, code = each(names, jobs.resume)
    _show(said, screen, lambda _: "resumed")
    return code


@click.command(cls=SectionedCommand, context_settings={"ignore_unknown_options": True})
@click.argument("number", type=click.IntRange(-1000, 1000), metavar="NUMBER")
@NAMES
@shown()
@placed
@click.pass_obj
def priority(
    world: World, *, number: int, names: Sequence[str], place: Place, screen: Screen
) -> int:
    """Change which job starts first: -1000 to 1000, higher first; not while a job runs."""
    with world.connect(place) as jobs:
        said, code = each(names, lambda name: jobs.set_priority(name, number))
    _show(said, screen, lambda job: f"has priority {job.priority}")
    return code


@click.command(cls=SectionedCommand)
@NAMES
@click.option("--wait", is_flag=True, help="Until the new jobs have finished.")
@shown()
@placed
@click.pass_obj
def rerun(world: World, *, names: Sequence[str], wait: bool, place: Place, screen: Screen) -> int:
    """Run jobs again: each as a new job, `JOB-r1`, `JOB-r2`, …, linked to the old one."""
    with world.connect(place) as jobs:
        said, code = each(names, jobs.rerun)
        if wait and said:
            wish = Wish([one.id for one in said], patience=PATIENCE)
            return wait_for(jobs, world, wish, screen) or code
    if screen.for_people:
        for one in said:
            screen.line(f"{one.id} will do the same again")
    elif said:
        screen.answers(said, one=len(said) == 1)
    return code
