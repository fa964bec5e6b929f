"""`audit check`."""

from collections.abc import Sequence
from typing import Final

import click

from asyncjob.audit.checker import CheckOptions, HistoryChecker
from asyncjob.audit.evidence import read_audit_logs, read_handler_records
from asyncjob.audit.history_file import read_history
from asyncjob.audit.retention_rules import RetentionFloors
from asyncjob.cli.command_classes import SectionedCommand
from asyncjob.cli.commands.audit.report import report_json, report_lines, uncertainties
from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.output.printer import OutputFormat, Printer, note, with_printer

_FLOORS: Final = RetentionFloors()
_SECONDS: Final = click.FloatRange(min=0)


@click.command(cls=SectionedCommand)
@click.argument("file", metavar="FILE")
@click.option(
    "--audit-log",
    "audit_logs",
    multiple=True,
    metavar="FILE",
    help="Audit log of the API server, JSON lines; repeatable.",
)
@click.option(
    "--handler-record",
    "handler_records",
    multiple=True,
    metavar="FILE",
    help="What a worker recorded with --handler-record; repeatable.",
)
@click.option(
    "--no-manual-deletions",
    is_flag=True,
    help="Nobody but the operator deleted jobs: judge each deletion.",
)
@click.option(
    "--operator-user",
    "operator_users",
    multiple=True,
    metavar="USER",
    help="User of the operator in the audit log; repeatable. Default: each service account "
    "asyncjob-operator.",
)
@click.option(
    "--retention-min-age",
    type=_SECONDS,
    default=_FLOORS.min_age,
    show_default=True,
    help="The operator's option of this name, in seconds.",
)
@click.option(
    "--retention-dedup-window",
    type=_SECONDS,
    default=_FLOORS.dedup_window,
    show_default=True,
    help="The operator's option of this name, in seconds.",
)
@click.option(
    "--clock-tolerance",
    type=_SECONDS,
    default=CheckOptions().clock_tolerance,
    show_default=True,
    help="Seconds by which clocks of machines may differ.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Return exit code 1 also where something could not be judged.",
)
@with_printer(OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML)
def check(
    *,
    file: str,
    audit_logs: Sequence[str],
    handler_records: Sequence[str],
    no_manual_deletions: bool,
    operator_users: Sequence[str],
    retention_min_age: float,
    retention_dedup_window: float,
    clock_tolerance: float,
    strict: bool,
    printer: Printer,
) -> int:
    """Judge a history that `audit record` has written; - is stdin.

    The rules are written apart from those that the API server enforces, and each violation names
    its rule, the versions and the times. Exit code 1 if a rule is broken.

    \b
      asyncjob audit check history.jsonl.gz
      asyncjob audit check history.jsonl --audit-log audit.log --handler-record worker-0.jsonl
    """  # noqa: D301 - click takes a real backspace for "do not wrap"
    options = CheckOptions(
        clock_tolerance=clock_tolerance,
        floors=RetentionFloors(retention_min_age, retention_dedup_window),
        manual_deletions=not no_manual_deletions,
        operator_users=frozenset(operator_users),
    )
    checker = HistoryChecker(
        options, read_audit_logs(audit_logs), read_handler_records(handler_records)
    )
    report = checker.check(read_history(file))
    if printer.human_readable:
        for line in report_lines(report, colour=printer.colour):
            printer.line(line)
    else:
        printer.data(report_json(report))
    for line in uncertainties(report):
        note(line)
    unsure = strict and any(uncertainties(report))
    return ExitCode.FAILED if report.counts or unsure else ExitCode.OK
