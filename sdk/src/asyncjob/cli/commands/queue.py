"""`queue list|get|pause|resume|top`."""

from collections.abc import Callable, Sequence

import click

from asyncjob.cli import offering
from asyncjob.cli.durations import Duration
from asyncjob.cli.lazy import SectionedCommand, SectionedGroup
from asyncjob.cli.naming import Name
from asyncjob.cli.place import Place, placed, placed_anywhere
from asyncjob.cli.screen import Screen, note, shown
from asyncjob.cli.surroundings_rows import queue_table
from asyncjob.cli.tables import Table
from asyncjob.cli.world import World
from asyncjob.client.interface import Jobs
from asyncjob.rest.surroundings import QueueInfo

EMPTY = "no queues: none is configured, and there are neither jobs nor workers"


@click.group(cls=SectionedGroup)
def queue() -> None:
    """Look at queues, pause and resume them."""


@queue.command("list", cls=SectionedCommand)
@shown()
@placed_anywhere
@click.pass_obj
def list_(world: World, *, place: Place, screen: Screen) -> None:
    """List queues: those with an AsyncQueue, and those that have jobs or workers."""
    with world.overview(place) as jobs:
        found = jobs.queues()
    _show(found, place, screen)


def _show(found: Sequence[QueueInfo], place: Place, screen: Screen, *, one: bool = False) -> None:
    if not screen.for_people:
        screen.answers(found, one=one)
    elif found:
        screen.table(queue_table(found, everywhere=place.everywhere))
    else:
        note(EMPTY)


@queue.command(cls=SectionedCommand)
@click.argument("name", type=Name(offering.queues), metavar="QUEUE")
@shown()
@placed
@click.pass_obj
def get(world: World, *, name: str, place: Place, screen: Screen) -> None:
    """Show one queue."""
    with world.connect(place) as jobs:
        _show([jobs.queue(name)], place, screen, one=True)


@queue.command(cls=SectionedCommand)
@click.argument("name", type=Name(offering.queues), metavar="QUEUE")
@shown()
@placed
@click.pass_obj
def pause(world: World, *, name: str, place: Place, screen: Screen) -> None:
    """Keep the queue's jobs from starting; those that run go on.

    The queue is drained once none of them runs. Without an AsyncQueue one is created.
    """
    _act(world, place, screen, lambda jobs: jobs.pause(name), "paused")


@queue.command(cls=SectionedCommand)
@click.argument("name", type=Name(offering.queues), metavar="QUEUE")
@shown()
@placed
@click.pass_obj
def resume(world: World, *, name: str, place: Place, screen: Screen) -> None:
    """Let the queue's jobs start."""
    _act(world, place, screen, lambda jobs: jobs.resume_queue(name), "resumed")


def _act(
    world: World, place: Place, screen: Screen, act: Callable[[Jobs], QueueInfo], word: str
) -> None:
    with world.connect(place) as jobs:
        done = act(jobs)
    if screen.for_people:
        screen.line(f"queue {done.name} {word}")
    else:
        screen.answers([done], one=True)


@queue.command(cls=SectionedCommand)
@click.option("--every", type=Duration(), default="2s", show_default=True, help="Look so often.")
@click.option("--once", is_flag=True, help="Look once; so it does where there is no terminal.")
@shown()
@placed_anywhere
@click.pass_obj
def top(world: World, *, every: int, once: bool, place: Place, screen: Screen) -> None:
    """Follow the queues: jobs by phase, oldest, workers, slots, finished per minute."""
    with world.overview(place) as jobs:
        if once or not (screen.terminal and screen.for_people):
            _show(jobs.queues(), place, screen)
        else:
            _follow(jobs.queues, world, place, screen, every)


def _follow(
    look: Callable[[], Sequence[QueueInfo]], world: World, place: Place, screen: Screen, every: int
) -> None:
    from asyncjob.cli.live import LiveTable

    now = look()

    def draw() -> tuple[str, Table]:
        return f"{world.now():%H:%M:%S}Z", queue_table(now, everywhere=place.everywhere)

    with LiveTable(screen, draw):
        while True:
            world.sleep(every)
            now = look()
