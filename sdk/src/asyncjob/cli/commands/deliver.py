"""Sends what is to be submitted, and tells what became of each."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.orders import Wanted
from asyncjob.cli.progress import Progress, progress
from asyncjob.cli.screen import Format, Screen, note
from asyncjob.client.interface import Jobs
from asyncjob.rest.submission import BatchItem, Submitted


@dataclass
class Outcome:
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

    def take(self, item: BatchItem) -> None:
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


def deliver(jobs: Jobs, wishes: Sequence[Wanted], screen: Screen, *, silent: bool) -> Outcome:
    """Submit all; one alone raises what is wrong with it, of many each is told by itself.

    `silent`: nothing on stdout, because what is waited for will be shown there.
    """
    outcome = Outcome()
    if len(wishes) == 1:
        answer = jobs.submit(wishes[0].submission)
        outcome.take(BatchItem(job=answer))
        if not silent:
            _show_one(answer, screen)
        return outcome
    with _summed_up(outcome, len(wishes)), progress(len(wishes), seen=sys.stderr.isatty()) as bar:
        answers = jobs.submit_many(wish.submission for wish in wishes)
        for wish, item in zip(wishes, answers, strict=True):
            outcome.take(item)
            _show_of_many(wish, item, screen, bar, silent=silent)
    if not (screen.for_people or screen.format is Format.NAME or silent):
        screen.answers(outcome.items)
    return outcome


@contextmanager
def _summed_up(outcome: Outcome, total: int) -> Iterator[None]:
    """Say at the end, and at an end that comes too soon, what was done."""
    try:
        yield
    finally:
        note(outcome.summary(total))


def _show_one(answer: Submitted, screen: Screen) -> None:
    if screen.for_people:
        screen.line(said(answer))
    else:
        screen.answers([answer], one=True)


def said(answer: Submitted) -> str:
    """Return what became of one in words."""
    return f"{answer.id} created" if answer.created else f"{answer.id} exists ({answer.phase})"


def _show_of_many(
    wish: Wanted, item: BatchItem, screen: Screen, bar: Progress, *, silent: bool
) -> None:
    if item.error:
        bar.tell(f"error: {wish.where}: {item.error.detail or item.error.title}")
    elif item.job and not silent and screen.for_people:
        screen.line(said(item.job))
    elif item.job and not silent and screen.format is Format.NAME:
        screen.names([item.job.id])
    bar.advance()
