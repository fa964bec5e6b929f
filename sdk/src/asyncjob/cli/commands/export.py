"""`export`: everything of a namespace, or of all, into a file."""

from collections import Counter
from collections.abc import Sequence

import click

from asyncjob import __version__
from asyncjob.cli.backup import format as layout
from asyncjob.cli.backup.choosing import chosen
from asyncjob.cli.backup.fetching import pages
from asyncjob.cli.backup.spool import STDOUT, Spool, spooled
from asyncjob.cli.backup.words import exported
from asyncjob.cli.lazy import SectionedCommand
from asyncjob.cli.place import Place, placed
from asyncjob.cli.screen import note
from asyncjob.cli.straight import Cluster
from asyncjob.cli.world import World
from asyncjob.json_types import child, text
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.timestamps import to_text
from asyncjob.names import API_VERSION, JOB_KIND, collection


@click.command(cls=SectionedCommand)
@click.argument("file", default=STDOUT, metavar="[FILE]")
@click.option("--all-namespaces", "-A", is_flag=True, help="Of all, not of one namespace.")
@click.option("--queue", "-q", "queues", multiple=True, metavar="QUEUE", help="Of these alone.")
@placed
@click.pass_obj
def export(
    world: World, *, file: str, all_namespaces: bool, queues: Sequence[str], place: Place
) -> None:
    """Write jobs, queues and schedules, with all that is known of them, to FILE or stdout.

    JSON, one object in each line. Each kind is read as it was at one moment. A file appears, or
    takes the place of an older one, when it is whole; nobody but you can read it.

    \b
      asyncjob export backup.jsonl
      asyncjob export -A | gzip > backup.jsonl.gz
    """  # noqa: D301 - click takes a real backspace for "do not wrap"
    if all_namespaces and place.namespace:
        raise click.UsageError("give --namespace or --all-namespaces, not both")
    with world.cluster(place) as cluster, spooled(file) as spool:
        namespace = None if all_namespaces else cluster.namespace
        spool.write(
            layout.head(
                version=__version__, time=to_text(world.now()), namespace=namespace, queues=queues
            )
        )
        counts: Counter[str] = Counter()
        phases: Counter[str] = Counter()
        for kind in layout.PLURALS:
            phases = _kind(cluster, spool, kind, namespace, frozenset(queues))
            counts[kind] = phases.total()
        spool.write(layout.end(counts))
    note(exported(counts, phases, namespace, file))


def _kind(
    cluster: Cluster, spool: Spool, kind: str, namespace: str | None, queues: frozenset[str]
) -> Counter[str]:
    """Write all of a kind; return how many of each phase there are."""
    begin, phases = spool.mark(), Counter[str]()
    path = collection(namespace, layout.PLURALS[kind])
    for page in cluster.iterate(pages(path, cluster.patience)):
        if page.anew:
            spool.back_to(begin)
            phases.clear()
        for obj in page.objects:
            if chosen(obj, kind, queues):
                spool.write(layout.record(obj, kind, API_VERSION))
                default = Phase.QUEUED if kind == JOB_KIND else ""
                phases[text(child(obj, "status"), "phase", default)] += 1
    return phases
