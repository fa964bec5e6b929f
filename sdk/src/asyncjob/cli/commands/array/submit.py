"""`array submit`: one array, of a number of items, those in a file here, or those in a store."""

import sys
from collections.abc import Sequence
from typing import Any

import click

from asyncjob.cli.command_classes import SectionedCommand
from asyncjob.cli.commands.array.wait import ArrayWait, wait_for_array
from asyncjob.cli.connection import ConnectionOptions, with_connection
from asyncjob.cli.context import CliContext
from asyncjob.cli.durations import DurationParam
from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.input.array_submissions import (
    WAY_OUT,
    array_options,
    array_submission,
    inline_items,
)
from asyncjob.cli.input.documents import DocumentError, parse_payload, read_documents
from asyncjob.cli.output.printer import CommandFailedError, Printer, with_printer
from asyncjob.rest.arrays import ArraySubmission, SubmittedArray
from asyncjob.submission.errors import InvalidSubmissionError


@click.command(cls=SectionedCommand)
@click.argument("kind", metavar="TYPE")
@click.argument("words", nargs=-1, metavar="[PAYLOAD]")
@array_options
@click.option("--wait", is_flag=True, help="Wait until it has ended; exit code as `array wait`.")
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
    kind: str,
    words: Sequence[str],
    wait: bool,
    timeout: int,
    connection: ConnectionOptions,
    printer: Printer,
    **options: Any,
) -> int:
    """Submit an array: one handler over many items.

    PAYLOAD is what all items share: JSON, or pairs: key=text, key:=JSON. --wait shows progress,
    rate and expected end on stderr.

    \b
      asyncjob array submit thumb --count 100000 --max-failed 1% --wait
      asyncjob array submit thumb.file -f items.jsonl --name thumbs
      asyncjob array submit invoice --from s3://bucket/customers.csv --chunk-size 200
      ls *.jpg | jq -R . | asyncjob array submit thumb.file -f -
    """  # noqa: D301 - click takes a real backspace for "do not wrap"
    submission = _prepare(kind, words, options)
    with cli.connect(connection) as jobs:
        answer = jobs.submit_array(submission)
        if wait:
            return wait_for_array(jobs, cli, ArrayWait(answer.name, timeout), printer)
    printer.outcomes([answer], describe_submitted_array)
    return ExitCode.OK


def _prepare(kind: str, words: Sequence[str], options: dict[str, Any]) -> ArraySubmission:
    """Return what is to be submitted; raises UsageError where that is not clear."""
    count, file, uri = (options.pop(name) for name in ("count", "file", "uri"))
    record_format, skip = options.pop("record_format"), options.pop("skip")
    done = {"skip": skip} if skip else {}
    if sum(one is not None for one in (count, file, uri)) != 1:
        raise click.UsageError("give exactly one of --count N, -f FILE and --from URI")
    if record_format and uri is None:
        raise click.UsageError("--format is for --from URI")
    try:
        payload = parse_payload(words) if words else None
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    try:
        if count is not None:
            return array_submission(kind, {"count": count, **done}, payload, options)
        if uri is not None:
            source = {"uri": uri, **({"format": record_format} if record_format else {})}
            return array_submission(kind, {"from": source, **done}, payload, options)
        documents = list(read_documents([file], sys.stdin, advice=WAY_OUT))
        location = "stdin" if file == "-" else file
        inline = inline_items(location, documents)
        return array_submission(kind, {"inline": inline, **done}, payload, options)
    except (DocumentError, InvalidSubmissionError) as error:
        raise NoArraySubmittedError(str(error)) from error


class NoArraySubmittedError(CommandFailedError):
    """The input is invalid; nothing was submitted."""

    exit_code = ExitCode.USAGE
    last_line = "nothing was submitted"
    code = "invalid"


def describe_submitted_array(answer: SubmittedArray) -> str:
    """Return what became of it in words."""
    name = f"array {answer.name}"
    return f"{name} created" if answer.created else f"{name} exists ({answer.phase})"
