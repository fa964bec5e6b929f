"""`submit`.

Reads what is to be submitted, checks all of it, sends it and prints the outcome of each job.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import click

from asyncjob.cli.command_classes import SectionedCommand
from asyncjob.cli.commands.wait import WaitOptions, wait_for_jobs
from asyncjob.cli.connection import ConnectionOptions, with_connection
from asyncjob.cli.context import CliContext
from asyncjob.cli.durations import DurationParam
from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.input.documents import (
    Document,
    DocumentError,
    job_documents,
    parse_payload,
    read_documents,
)
from asyncjob.cli.input.submissions import (
    InvalidInputError,
    PreparedSubmission,
    payload_documents,
    prepare_submissions,
    submission_fields,
    submission_options,
)
from asyncjob.cli.output.printer import (
    CommandFailedError,
    OutputFormat,
    Printer,
    ProgressBar,
    note,
    progress_bar,
    with_printer,
)
from asyncjob.client.api import Jobs
from asyncjob.errors import explained
from asyncjob.rest.submission import BatchItem, Submitted


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
@click.option("--wait", is_flag=True, help="Wait until the job has finished; exit code as `wait`.")
@click.option(
    "--timeout", type=DurationParam(), default="1h", show_default=True, help="Time limit of --wait."
)
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
    """Submit one or more jobs.

    PAYLOAD is JSON, or pairs: key=text, key:=JSON. Without a TYPE, files contain whole jobs:
    objects with the fields of an AsyncJob's spec, name and labels, or manifests. All input is
    validated before the first job is submitted. Options override values from files.

    \b
      asyncjob submit SEND_EMAIL to=ada@example.com urgent:=true
      asyncjob submit report.csv '{"source": "orders.csv"}' --wait
      asyncjob submit resize -f payloads.jsonl --queue images
      asyncjob submit -f jobs/ -o name
    """  # noqa: D301 - click takes a real backspace for "do not wrap"
    submissions = _prepare(kind, words, files, options, connection)
    with cli.connect(connection) as jobs:
        outcome = submit_all(jobs, submissions, printer, quiet=wait)
        if not (wait and outcome.ids):
            return outcome.code
        request = WaitOptions(outcome.ids, timeout=timeout)
        return wait_for_jobs(jobs, cli, request, printer) or outcome.code


def _prepare(
    kind: str | None,
    payload_arguments: Sequence[str],
    files: Sequence[str],
    options: dict[str, Any],
    connection: ConnectionOptions,
) -> list[PreparedSubmission]:
    """Return what is to be submitted; raises UsageError where that is not clear."""
    if kind is None and not files:
        raise click.UsageError("missing argument TYPE (or use -f FILE)")
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


class NothingSubmittedError(CommandFailedError):
    """The input is invalid; nothing was submitted."""

    exit_code = ExitCode.USAGE
    last_line = "nothing was submitted"
    code = "invalid"


@dataclass
class SubmitOutcome:
    """What became of all."""

    items: list[BatchItem] = field(default_factory=list)
    refused: int = 0
    created: int = 0

    @property
    def ids(self) -> list[str]:
        """Return the ids of those accepted, each once."""
        return list(dict.fromkeys(item.job.id for item in self.items if item.job))

    @property
    def code(self) -> ExitCode:
        """Return the exit code."""
        return ExitCode.FAILED if self.refused else ExitCode.OK

    def add(self, item: BatchItem) -> None:
        """Count one."""
        self.items.append(item)
        self.refused += item.error is not None
        self.created += bool(item.job and item.job.created)

    def summary(self, total: int) -> str:
        """Return it in one line."""
        known = len(self.items) - self.created - self.refused
        counted = ((self.created, "created"), (known, "existed already"), (self.refused, "refused"))
        summary = ", ".join(f"{count} {word}" for count, word in counted if count)
        left = total - len(self.items)
        return f"{summary or 'nothing submitted'}{f'; {left} not tried' if left else ''}"


def submit_all(
    jobs: Jobs, submissions: Sequence[PreparedSubmission], printer: Printer, *, quiet: bool
) -> SubmitOutcome:
    """Submit all; a single one raises its error, of several each is reported by itself.

    `quiet`: print nothing on stdout, because the jobs are printed once they have finished.
    """
    outcome = SubmitOutcome()
    if len(submissions) == 1:
        answer = jobs.submit(submissions[0].submission)
        outcome.add(BatchItem(job=answer))
        if not quiet:
            printer.outcomes([answer], describe_submitted)
        return outcome
    with (
        _summary_at_end(outcome, len(submissions)),
        progress_bar(len(submissions), visible=sys.stderr.isatty()) as bar,
    ):
        answers = jobs.submit_many(prepared.submission for prepared in submissions)
        for prepared, item in zip(submissions, answers, strict=True):
            outcome.add(item)
            _print_item(prepared, item, printer, bar, quiet=quiet)
    if not (printer.human_readable or printer.format is OutputFormat.NAME or quiet):
        printer.objects(outcome.items)
    return outcome


@contextmanager
def _summary_at_end(outcome: SubmitOutcome, total: int) -> Iterator[None]:
    """Say at the end, and at an end that comes too soon, what was done."""
    try:
        yield
    finally:
        note(outcome.summary(total))


def describe_submitted(answer: Submitted) -> str:
    """Return what became of one in words."""
    return f"{answer.id} created" if answer.created else f"{answer.id} exists ({answer.phase})"


def _print_item(
    prepared: PreparedSubmission,
    item: BatchItem,
    printer: Printer,
    bar: ProgressBar,
    *,
    quiet: bool,
) -> None:
    if item.error:
        detail = item.error.detail or item.error.title
        refusal = explained(detail, item.error.code) if item.error.code else detail
        bar.message(f"error: {prepared.location}: {refusal}")
    elif item.job and not quiet and printer.human_readable:
        printer.line(describe_submitted(item.job))
    elif item.job and not quiet and printer.format is OutputFormat.NAME:
        printer.names([item.job.id])
    bar.advance()
