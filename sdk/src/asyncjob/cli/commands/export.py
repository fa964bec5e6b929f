"""`export`.

Lists all objects of each kind at one resource version, page by page, and writes them to a file.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import click

from asyncjob import __version__
from asyncjob.cli.backup import export_file as layout
from asyncjob.cli.backup.export_file import STDOUT, ExportWriter, create_export
from asyncjob.cli.backup.records import export_summary, in_queues
from asyncjob.cli.command_classes import SectionedCommand
from asyncjob.cli.connection import ConnectionOptions, with_connection
from asyncjob.cli.context import CliContext
from asyncjob.cli.direct import DirectCluster
from asyncjob.cli.output.printer import note
from asyncjob.client.kubernetes.calls import next_page
from asyncjob.client.steps import Emissions, Emit
from asyncjob.errors import ExpiredError
from asyncjob.json_types import JsonObject, as_object, child, items, text
from asyncjob.kube.paging import ListPager
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob.names import API_VERSION, JOB_KIND, collection_path


@click.command(cls=SectionedCommand)
@click.argument("file", default=STDOUT, metavar="[FILE]")
@click.option("--all-namespaces", "-A", is_flag=True, help="Export all namespaces.")
@click.option(
    "--queue", "-q", "queues", multiple=True, metavar="QUEUE", help="Only this queue; repeatable."
)
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
    """Write jobs, queues and schedules, including their status, to FILE or stdout.

    Writes one JSON object per line. Each kind is read at one resource version. FILE is created
    or replaced once the export is complete, readable only by you.

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


MAX_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class ObjectPage:
    """Objects; `restarted`: discard all earlier pages."""

    objects: tuple[JsonObject, ...] = ()
    restarted: bool = False


def read_pages(path: str, retry_seconds: float) -> Emissions[ObjectPage]:
    """Emit a collection, from the start again where its resource version has expired.

    Raises ExpiredError where that happens again and again.
    """
    tries_left, paging = MAX_ATTEMPTS, ListPager()
    while True:
        try:
            found = yield from next_page(paging, path, (), retry_seconds)
        except ExpiredError:
            tries_left -= 1
            if not (paging.has_more and tries_left):
                raise
            paging.restart()
            yield Emit(ObjectPage(restarted=True))
            continue
        yield Emit(ObjectPage(tuple(as_object(one) for one in items(found, "items"))))
        if not paging.has_more:
            return
