"""Sends what is to be submitted, and tells what became of each."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.orders import PreparedSubmission
from asyncjob.cli.progress import ProgressBar, progress_bar
from asyncjob.cli.screen import OutputFormat, Printer, note
from asyncjob.client.interface import Jobs
from asyncjob.rest.submission import BatchItem, Submitted


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
        said = ", ".join(f"{count} {word}" for count, word in counted if count)
        left = total - len(self.items)
        return f"{said or 'nothing submitted'}{f'; {left} not tried' if left else ''}"


def submit_all(
    jobs: Jobs, submissions: Sequence[PreparedSubmission], printer: Printer, *, quiet: bool
) -> SubmitOutcome:
    """Submit all; one alone raises what is wrong with it, of many each is told by itself.

    `silent`: nothing on stdout, because what is waited for will be shown there.
    """
    outcome = SubmitOutcome()
    if len(submissions) == 1:
        answer = jobs.submit(submissions[0].submission)
        outcome.add(BatchItem(job=answer))
        if not quiet:
            _print_one(answer, printer)
        return outcome
    with (
        _summary_at_end(outcome, len(submissions)),
        progress_bar(len(submissions), visible=sys.stderr.isatty()) as bar,
    ):
        answers = jobs.submit_many(wish.submission for wish in submissions)
        for wish, item in zip(submissions, answers, strict=True):
            outcome.add(item)
            _print_item(wish, item, printer, bar, quiet=quiet)
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


def _print_one(answer: Submitted, printer: Printer) -> None:
    if printer.human_readable:
        printer.line(describe_submitted(answer))
    else:
        printer.objects([answer], one=True)


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
        bar.message(f"error: {prepared.location}: {item.error.detail or item.error.title}")
    elif item.job and not quiet and printer.human_readable:
        printer.line(describe_submitted(item.job))
    elif item.job and not quiet and printer.format is OutputFormat.NAME:
        printer.names([item.job.id])
    bar.advance()
