"""`workers`: who is there to run jobs."""

import click

from asyncjob.cli.lazy import SectionedCommand
from asyncjob.cli.offering import of_queues
from asyncjob.cli.place import Place, placed_anywhere
from asyncjob.cli.screen import Screen, note, shown
from asyncjob.cli.surroundings_rows import worker_table
from asyncjob.cli.world import World


@click.command(cls=SectionedCommand)
@click.option(
    "--queue",
    "-q",
    metavar="QUEUE",
    help="Only those that serve it.",
    shell_complete=of_queues,
)
@click.option("--type", "kind", metavar="TYPE", help="Only those with a handler for it.")
@shown()
@placed_anywhere
@click.pass_obj
def workers(
    world: World, *, queue: str | None, kind: str | None, place: Place, screen: Screen
) -> None:
    """List the live workers: queue, slots, what they run, which types they have handlers for."""
    with world.overview(place) as jobs:
        found = [
            one
            for one in jobs.workers()
            if queue in {None, one.queue} and (kind is None or kind in one.types)
        ]
    if not screen.for_people:
        screen.answers(found)
    elif found:
        screen.table(worker_table(found, world.now(), everywhere=place.everywhere))
    else:
        note("no live workers" + (" match" if queue or kind else ": no job will start"))
