"""`restore`: what an export holds, into a cluster."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from asyncjob.cli.backup.moving import moves
from asyncjob.cli.backup.planning import Plan, Wanted, plan
from asyncjob.cli.backup.reading import opened, read
from asyncjob.cli.backup.restoring import Restoring
from asyncjob.cli.backup.tally import Tally, as_json, report
from asyncjob.cli.lazy import SectionedCommand
from asyncjob.cli.place import Place, placed
from asyncjob.cli.progress import progress
from asyncjob.cli.screen import Format, Screen, shown
from asyncjob.cli.world import World


@click.command(cls=SectionedCommand)
@click.argument("file", metavar="FILE")
@click.option("--dry-run", is_flag=True, help="Have the cluster check all, and create nothing.")
@click.option("--dead-letters", is_flag=True, help="Those too, as jobs that have not begun.")
@click.option("--queue", "-q", "queues", multiple=True, metavar="QUEUE", help="Of these alone.")
@click.option(
    "--map", "pairs", multiple=True, metavar="OLD=NEW", help="From one namespace to another."
)
@click.option("--partial", is_flag=True, help="Take a part of an export, or one that was cut off.")
@shown(Format.TABLE, Format.JSON, Format.YAML)
@placed
@click.pass_obj
def restore(
    world: World,
    *,
    file: str,
    dry_run: bool,
    dead_letters: bool,
    queues: Sequence[str],
    pairs: tuple[str, ...],
    partial: bool,
    place: Place,
    screen: Screen,
) -> int:
    """Create what an export holds: queues, schedules and unfinished jobs, these two suspended.

    A status cannot be restored: jobs that had begun start anew, without their checkpoint. What has
    finished is left out. Objects go to the namespaces that they came from, or to --namespace. What
    is there already is left as it is, so the same command may be repeated. All of FILE (- for
    stdin) is checked first.

    \b
      asyncjob restore backup.jsonl --dry-run
      asyncjob restore backup.jsonl
      asyncjob list -l asyncjob.dev/restored=suspended -o name | xargs asyncjob resume
    """  # noqa: D301 - click takes a real backspace for "do not wrap"
    with opened(file) as stream:
        contents = read(stream, file, partial=partial)
        made = plan(contents, Wanted(frozenset(queues), dead_letters))
        where = moves(contents, place.namespace, pairs)
        tally = Tally(dry_run)
        with world.cluster(place) as cluster, _told(tally, made, screen):
            restoring = Restoring(cluster, stream, made, where, tally)
            with progress(len(made.records), seen=sys.stderr.isatty(), doing="restoring") as bar:
                restoring.all(bar)
    return tally.code


@contextmanager
def _told(tally: Tally, made: Plan, screen: Screen) -> Iterator[None]:
    """Say at the end, and at an end that comes too soon, what was done."""
    try:
        yield
    finally:
        if screen.for_people:
            for line in report(tally, made):
                screen.line(line)
        else:
            screen.data(as_json(tally, made))
