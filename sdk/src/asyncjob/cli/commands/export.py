"""`export`.

Lists all objects of each kind at one resource version, page by page, and writes them to a file.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
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
from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.output.printer import note
from asyncjob.cli.output.tables import one_line
from asyncjob.client.errors import NotFoundError
from asyncjob.client.kubernetes.calls import KubernetesCalls
from asyncjob.deep_json import TruncatedObject, is_deeper
from asyncjob.errors import ExpiredError, InvalidError
from asyncjob.json_types import JsonObject, as_object, child, items, text
from asyncjob.kube.paging import ListPager
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob.names import API_VERSION, ARRAY_KIND, JOB_KIND, collection_path


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
) -> ExitCode:
    """Write jobs, arrays, queues and cron jobs, including their status, to FILE or stdout.

    Writes one JSON object per line. Each kind is read at one resource version. FILE is created
    or replaced once the export is complete, readable only by you. An object that is nested too
    deeply to be written is left out and named on stderr; the exit code is then 11.

    \b
      asyncjob export backup.jsonl
      asyncjob export -A | gzip > backup.jsonl.gz
    """  # noqa: D301 - click takes a real backspace for "do not wrap"
    if all_namespaces and connection.namespace:
        raise click.UsageError("give --namespace or --all-namespaces, not both")
    with cli.cluster(connection) as cluster, create_export(file) as writer:
        namespace = None if all_namespaces else cluster.namespace
        writer.write(
            layout.header(
                version=__version__,
                time=format_timestamp(cli.now()),
                namespace=namespace,
                queues=queues,
            )
        )
        counts: Counter[str] = Counter()
        phases: Counter[str] = Counter()
        left_out: list[str] = []
        for kind in layout.PLURALS:
            try:
                written = _export_kind(cluster, writer, kind, namespace, frozenset(queues))
            except NotFoundError:
                if kind != ARRAY_KIND:
                    raise
                written = _WrittenKind()  # CRDs of before there were arrays
            phases = written.phases
            counts[kind] = phases.total()
            left_out += written.left_out
        writer.write(layout.footer(counts))
    for line in left_out:
        note(f"left out: {one_line(line)}")
    note(export_summary(counts, phases, namespace, file))
    return ExitCode.LEFT_OUT if left_out else ExitCode.OK


@dataclass(slots=True)
class _WrittenKind:
    """How many of each phase were written, and what was not, with the reason."""

    phases: Counter[str] = field(default_factory=Counter)
    left_out: list[str] = field(default_factory=list)


def _export_kind(
    cluster: DirectCluster,
    writer: ExportWriter,
    kind: str,
    namespace: str | None,
    queues: frozenset[str],
) -> _WrittenKind:
    """Write all of a kind but for what is nested too deeply."""
    begin, written = writer.position(), _WrittenKind()
    path = collection_path(namespace, layout.PLURALS[kind])
    for page in cluster.iterate(read_pages(cluster.api, path)):
        if page.restarted:
            writer.truncate_to(begin)
            written = _WrittenKind()
        for obj in page.objects:
            if in_queues(obj, kind, queues):
                exported = layout.exported_object(obj, kind, API_VERSION, page.object_levels)
                try:
                    page.require_whole(exported)
                    writer.write(exported)
                except InvalidError as error:
                    meta = child(obj, "metadata")
                    name = f"{text(meta, 'namespace')}/{text(meta, 'name')}"
                    written.left_out.append(f"{kind} {name}: {error}")
                    continue
                default = Phase.QUEUED if kind == JOB_KIND else ""
                written.phases[text(child(obj, "status"), "phase", default)] += 1
    return written


MAX_ATTEMPTS: Final = 3
_LEVELS_ABOVE_OBJECTS: Final = 2


@dataclass(frozen=True, slots=True)
class ObjectPage:
    """Objects; `restarted`: discard all earlier pages.

    `levels`: how many levels of the page could be read, if not all.
    """

    objects: tuple[JsonObject, ...] = ()
    restarted: bool = False
    levels: int | None = None

    @property
    def object_levels(self) -> int | None:
        """How many levels of each object could be read, if not all."""
        return None if self.levels is None else self.levels - _LEVELS_ABOVE_OBJECTS

    def require_whole(self, obj: JsonObject) -> None:
        """Raise InvalidError for an object of it that goes as deep as the page was read."""
        if self.object_levels is not None and is_deeper(obj, self.object_levels - 1):
            raise InvalidError(f"nested too deeply: {self.levels} levels of its page could be read")


async def read_pages(api: KubernetesCalls, path: str) -> AsyncGenerator[ObjectPage]:
    """Yield a collection, from the start again where its resource version has expired.

    Raises ExpiredError where that happens again and again.
    """
    tries_left, paging = MAX_ATTEMPTS, ListPager()
    while True:
        try:
            found = await api.next_page(paging, path)
        except ExpiredError:
            tries_left -= 1
            if not (paging.has_more and tries_left):
                raise
            paging.restart()
            yield ObjectPage(restarted=True)
            continue
        levels = found.levels if isinstance(found, TruncatedObject) else None
        objects = tuple(as_object(one) for one in items(found, "items"))
        yield ObjectPage(objects, levels=levels)
        if not paging.has_more:
            return
