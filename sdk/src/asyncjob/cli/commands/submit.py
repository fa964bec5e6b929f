"""`submit`: one job or many."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import click

from asyncjob.cli.commands.deliver import submit_all
from asyncjob.cli.commands.wait import WaitRequest, wait_for_jobs
from asyncjob.cli.documents import Document, DocumentError, read_documents
from asyncjob.cli.durations import DurationParam
from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.lazy import SectionedCommand
from asyncjob.cli.manifests import job_documents
from asyncjob.cli.orders import (
    InvalidInputError,
    PreparedSubmission,
    payload_documents,
    prepare_submissions,
)
from asyncjob.cli.pairs import parse_payload
from asyncjob.cli.place import ConnectionOptions, with_connection
from asyncjob.cli.screen import Printer, with_printer
from asyncjob.cli.submit_options import submission_fields, submission_options
from asyncjob.cli.tables import one_line
from asyncjob.cli.world import CliContext


@click.command(cls=SectionedCommand)
@click.argument("kind", required=False, metavar="[TYPE]")
@click.argument("words", nargs=-1, metavar="[PAYLOAD]")
@click.option(
    "--file",
    "-f",
    "files",
    multiple=True,
    metavar="FILE",
    help="With TYPE: payloads; without: jobs. JSON, JSON lines, YAML, a folder, - for stdin.",
)
@submission_options
@click.option("--wait", is_flag=True, help="Until it has finished; exit code as `wait`.")
@click.option("--timeout", type=DurationParam(), default="1h", show_default=True, help="Of --wait.")
@with_printer()
@with_connection
@click.pass_obj
def submit(
    cli: CliContext,
    /,
    *,
    kind: str | None,
    words: Sequence[str],
    files: Sequence[str],
    wait: bool,
    timeout: int,
    connection: ConnectionOptions,
    printer: Printer,
    **options: Any,
) -> int:
    """Submit a job, or many.

    PAYLOAD is JSON, or pairs: key=text, key:=JSON. Files without a TYPE hold whole jobs: objects
    with the fields of an AsyncJob's spec, name and labels, or manifests. Everything is checked
    before the first job is submitted; options win over what files say.

    \b
      asyncjob submit SEND_EMAIL to=ada@example.com urgent:=true
      asyncjob submit report.csv '{"source": "orders.csv"}' --wait
      asyncjob submit resize -f payloads.jsonl --queue images
      asyncjob submit -f jobs/ -o name
    """  # noqa: D301 - click takes a real backspace for "do not wrap"
    wishes = _prepare(kind, words, files, options, connection)
    with cli.connect(connection) as jobs:
        outcome = submit_all(jobs, wishes, printer, quiet=wait)
        if not (wait and outcome.ids):
            return outcome.code
        wish = WaitRequest(outcome.ids, timeout=timeout)
        return wait_for_jobs(jobs, cli, wish, printer) or outcome.code


def _prepare(
    kind: str | None,
    payload_arguments: Sequence[str],
    files: Sequence[str],
    options: dict[str, Any],
    connection: ConnectionOptions,
) -> list[PreparedSubmission]:
    """Return what is to be submitted; raises UsageError where that is not clear."""
    if kind is None and not files:
        raise click.UsageError("what? Give a TYPE, or files of jobs with -f")
    if payload_arguments and files:
        raise click.UsageError("give a payload as argument or with -f, not both")
    try:
        return prepare_submissions(
            _read_input(kind, payload_arguments, files, connection), submission_fields(options)
        )
    except (DocumentError, InvalidInputError) as error:
        raise NothingSubmittedError(str(error)) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _read_input(
    kind: str | None,
    payload_arguments: Sequence[str],
    files: Sequence[str],
    connection: ConnectionOptions,
) -> Iterator[Document]:
    found = read_documents(files, sys.stdin)
    if kind is None:
        for document in found:
            yield from job_documents(document, connection.namespace)
    elif files:
        yield from payload_documents(kind, found)
    elif payload_arguments:
        yield from payload_documents(kind, [Document("", parse_payload(payload_arguments))])
    else:
        yield Document("", {"type": kind})


class NothingSubmittedError(click.ClickException):
    """What is to be submitted cannot be; nothing was."""

    exit_code = ExitCode.USAGE

    def show(self, file: Any = None) -> None:  # noqa: ARG002 - as click calls it
        """Say so, a line for each mistake."""
        for line in self.message.splitlines():
            click.echo(f"error: {one_line(line)}", err=True)
        click.echo("nothing was submitted", err=True)
