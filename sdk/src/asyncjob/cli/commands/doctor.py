"""`doctor`: runs the checks and prints the findings, each with a way out."""

import click

from asyncjob.cli.command_classes import SectionedCommand
from asyncjob.cli.connection import ConnectionOptions, with_connection
from asyncjob.cli.context import CliContext
from asyncjob.cli.doctor.examination import examine_environment, examine_jobs, is_reachable
from asyncjob.cli.doctor.findings import (
    Finding,
    finding_json,
    finding_lines,
    findings_exit_code,
    findings_summary,
)
from asyncjob.cli.input.resource_names import current_program
from asyncjob.cli.output.printer import OutputFormat, Printer, note, with_printer
from asyncjob.errors import AsyncJobError


@click.command(cls=SectionedCommand)
@click.option("--strict", is_flag=True, help="Return exit code 1 for warnings, too.")
@with_printer(OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML)
@with_connection
@click.pass_obj
def doctor(
    cli: CliContext, *, strict: bool, connection: ConnectionOptions, printer: Printer
) -> int:
    """Find problems of the installation and suggest fixes.

    Checks the API server, its version and clock, the resource types and policies and whether they
    are enforced (by dry runs that change nothing), your permissions, the operator, workers, stuck
    jobs, arrays and dead letters; with --server the gateway. Exit code 1 if there is a problem.
    """
    findings = examine_environment(connection, cli.now)
    if is_reachable(findings):
        findings += _job_findings(cli, connection)
    if printer.human_readable:
        for line in finding_lines(findings, current_program(), colour=printer.colour):
            printer.line(line)
        note(findings_summary(findings))
    else:
        printer.data({"items": [finding_json(one) for one in findings]})
    return findings_exit_code(findings, strict=strict)


def _job_findings(cli: CliContext, connection: ConnectionOptions) -> list[Finding]:
    try:
        with cli.connect(connection) as jobs:
            return examine_jobs(jobs, cli.now())
    except AsyncJobError:
        return []  # what keeps us from connecting has been found already
