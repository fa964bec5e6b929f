"""`export`: everything of a namespace, or of all, into a file."""

from collections import Counter
from collections.abc import Sequence

import click

from asyncjob import __version__
from asyncjob.cli.backup import format as layout
from asyncjob.cli.backup.choosing import in_queues
from asyncjob.cli.backup.fetching import read_pages
from asyncjob.cli.backup.spool import STDOUT, ExportWriter, create_export
from asyncjob.cli.backup.words import export_summary
from asyncjob.cli.lazy import SectionedCommand
from asyncjob.cli.place import ConnectionOptions, with_connection
from asyncjob.cli.screen import note
from asyncjob.cli.straight import DirectCluster
from asyncjob.cli.world import CliContext
from asyncjob.json_types import child, text
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob.names import API_VERSION, JOB_KIND, collection_path


@click.command(cls=SectionedCommand)
@click.argument("file", default=STDOUT, metavar="[FILE]")
@click.option("--all-namespaces", "-A", is_flag=True, help="Of all, not of one namespace.")
@click.option("--queue", "-q", "queues", multiple=True, metavar="QUEUE", help="Of these alone.")
@with_connection
@click.pass_obj
def export(
    cli: CliContext,
    *,
    file: str,
    all_namespaces: bool,
    queues: Sequence[str],
    connection: ConnectionOptions,
) -> None:
    """Write jobs, queues and schedules, with all that is known of them, to FILE or stdout.

    JSON, one object in each line. Each kind is read as it was at one moment. A file appears, or
    takes the place of an older one, when it is whole; nobody but you can read it.

    \b
      asyncjob export backup.jsonl
      asyncjob export -A | gzip > backup.jsonl.gz
    """  # noqa: D301 - click takes a real backspace for "do not wrap"
    if all_namespaces and connection.namespace:
        raise click.UsageError("give --namespace or --all-namespaces, not both")
    with cli.cluster(connection) as cluster, create_export(file) as spool:
        namespace = None if all_namespaces else cluster.namespace
        spool.write(
            layout.header(
                version=__version__,
                time=format_timestamp(cli.now()),
                namespace=namespace,
                queues=queues,
            )
        )
        counts: Counter[str] = Counter()
        phases: Counter[str] = Counter()
        for kind in layout.PLURALS:
            phases = _export_kind(cluster, spool, kind, namespace, frozenset(queues))
            counts[kind] = phases.total()
        spool.write(layout.footer(counts))
    note(export_summary(counts, phases, namespace, file))


def _export_kind(
    cluster: DirectCluster,
    writer: ExportWriter,
    kind: str,
    namespace: str | None,
    queues: frozenset[str],
) -> Counter[str]:
    """Write all of a kind; return how many of each phase there are."""
    begin, phases = writer.position(), Counter[str]()
    path = collection_path(namespace, layout.PLURALS[kind])
    for page in cluster.iterate(read_pages(path, cluster.retry_seconds)):
        if page.restarted:
            writer.truncate_to(begin)
            phases.clear()
        for obj in page.objects:
            if in_queues(obj, kind, queues):
                writer.write(layout.exported_object(obj, kind, API_VERSION))
                default = Phase.QUEUED if kind == JOB_KIND else ""
                phases[text(child(obj, "status"), "phase", default)] += 1
    return phases
