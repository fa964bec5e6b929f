"""`restore`: checks an export, plans what to restore and creates it in a cluster."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from asyncjob.cli.backup.manifests import namespace_map
from asyncjob.cli.backup.plan import RestorePlan, RestoreSelection, build_plan
from asyncjob.cli.backup.reader import open_export, read_export
from asyncjob.cli.backup.restore import Restorer, RestoreReport, report_json, report_lines
from asyncjob.cli.command_classes import SectionedCommand
from asyncjob.cli.connection import ConnectionOptions, with_connection
from asyncjob.cli.context import CliContext
from asyncjob.cli.output.printer import OutputFormat, Printer, progress_bar, with_printer


@click.command(cls=SectionedCommand)
@click.argument("file", metavar="FILE")
@click.option("--dry-run", is_flag=True, help="Validate on the cluster without creating.")
@click.option(
    "--dead-letters", is_flag=True, help="Also restore dead letters and failed arrays, as new ones."
)
@click.option(
    "--queue", "-q", "queues", multiple=True, metavar="QUEUE", help="Only this queue; repeatable."
)
@click.option(
    "--map", "pairs", multiple=True, metavar="OLD=NEW", help="Move a namespace; repeatable."
)
@click.option("--all-items", is_flag=True, help="Run items of arrays again that were done already.")
@click.option("--partial", is_flag=True, help="Accept a part of an export, or a truncated one.")
@with_printer(OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML)
@with_connection
@click.pass_obj
def restore(
    cli: CliContext,
    *,
    file: str,
    dry_run: bool,
    dead_letters: bool,
    queues: Sequence[str],
    pairs: tuple[str, ...],
    all_items: bool,
    partial: bool,
    connection: ConnectionOptions,
    printer: Printer,
) -> int:
    """Restore an export: queues, and suspended, its cron jobs, unfinished arrays and jobs.

    A status cannot be restored: jobs that had started run again from the beginning, without their
    checkpoint. Of arrays the items run that were not done. What is finished is skipped. Objects are
    created in their original namespaces, or in --namespace. Existing objects are left unchanged, so
    the command can be repeated. All of FILE (- for stdin) is validated first.

    \b
      asyncjob restore backup.jsonl --dry-run
      asyncjob restore backup.jsonl
      asyncjob list -l asyncjob.dev/restored=suspended -o name | xargs asyncjob resume
    """  # noqa: D301 - click takes a real backspace for "do not wrap"
    with open_export(file) as stream:
        contents = read_export(stream, file, partial=partial)
        made = build_plan(contents, RestoreSelection(frozenset(queues), dead_letters, all_items))
        where = namespace_map(contents, connection.namespace, pairs)
        report = RestoreReport(dry_run)
        with cli.cluster(connection) as cluster, _report_at_end(report, made, printer):
            restoring = Restorer(cluster, stream, made, where, report)
            with progress_bar(
                len(made.records), visible=sys.stderr.isatty(), label="restoring"
            ) as bar:
                restoring.run(bar)
    return report.code


@contextmanager
def _report_at_end(
    restore_report: RestoreReport, plan: RestorePlan, printer: Printer
) -> Iterator[None]:
    """Say at the end, and at an end that comes too soon, what was done."""
    try:
        yield
    finally:
        if printer.human_readable:
            for line in report_lines(restore_report, plan):
                printer.line(line)
        else:
            printer.data(report_json(restore_report, plan))
