"""Submissions on their way to a gateway: checked, and each under a name or key of its own.

With these a request may be repeated when its answer is lost, and no job comes to be twice.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from asyncjob.client.by_rest.calls import Params, ask_for, path
from asyncjob.client.refusals import refusal
from asyncjob.client.steps import Call, Emissions, Emit
from asyncjob.intake import InvalidSubmissionError
from asyncjob.intake.checks import check
from asyncjob.intake.content import asked
from asyncjob.json_types import JsonObject
from asyncjob.rest.submission import BatchItem, BatchReport, Submission

BATCH: Final = 100
"""Jobs sent at a time."""


def as_sent(submission: Submission, new_id: str) -> JsonObject:
    """Return what is sent; raises InvalidSubmissionError."""
    told_apart = _told_apart(submission, new_id)
    fields = asked(told_apart)
    check(told_apart, fields)
    return fields


def _told_apart(submission: Submission, new_id: str) -> Submission:
    if submission.idempotency_key or submission.name:
        return submission
    field = "idempotency_key" if submission.deduplication_id else "name"
    return submission.model_copy(update={field: new_id})


def in_batches(
    submissions: Iterable[Submission], new_id: Callable[[], str], where: Params, patience: float
) -> Emissions[BatchItem]:
    """Send many and hand out what became of each, in their order."""
    rest = iter(submissions)
    while chunk := list(islice(rest, BATCH)):
        prepared = [_prepared(one, new_id()) for one in chunk]
        good = [one for one in prepared if not isinstance(one, BatchItem)]
        answers: Iterator[BatchItem] = iter(())
        if good:
            call = Call("POST", path("jobs", "batch"), where, body={"jobs": good})
            answers = iter((yield from ask_for(BatchReport, call, patience)).items)
        for one in prepared:
            yield Emit(one if isinstance(one, BatchItem) else next(answers))


def _prepared(submission: Submission, new_id: str) -> JsonObject | BatchItem:
    try:
        return as_sent(submission, new_id)
    except InvalidSubmissionError as error:
        return BatchItem(error=refusal(error))
