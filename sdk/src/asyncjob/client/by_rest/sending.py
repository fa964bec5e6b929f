"""Submissions on their way to a gateway: checked, and each under a name or key of its own.

With these a request may be repeated when its answer is lost, and no job comes to be twice.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from asyncjob.client.by_rest.calls import Params, api_path, request_model
from asyncjob.client.refusals import to_refusal
from asyncjob.client.steps import Call, Emissions, Emit
from asyncjob.intake import InvalidSubmissionError
from asyncjob.intake.checks import check_submission
from asyncjob.intake.content import set_fields
from asyncjob.json_types import JsonObject
from asyncjob.rest.submission import BatchItem, BatchReport, Submission

BATCH_SIZE: Final = 100
"""Jobs sent at a time."""


def to_request_body(submission: Submission, new_id: str) -> JsonObject:
    """Return what is sent; raises InvalidSubmissionError."""
    told_apart = _with_key_or_name(submission, new_id)
    fields = set_fields(told_apart)
    check_submission(told_apart, fields)
    return fields


def _with_key_or_name(submission: Submission, new_id: str) -> Submission:
    if submission.idempotency_key or submission.name:
        return submission
    field = "idempotency_key" if submission.deduplication_id else "name"
    return submission.model_copy(update={field: new_id})


def submit_in_batches(
    submissions: Iterable[Submission], new_id: Callable[[], str], params: Params, patience: float
) -> Emissions[BatchItem]:
    """Send many and hand out what became of each, in their order."""
    rest = iter(submissions)
    while chunk := list(islice(rest, BATCH_SIZE)):
        prepared = [_to_body_or_refusal(one, new_id()) for one in chunk]
        good = [one for one in prepared if not isinstance(one, BatchItem)]
        answers: Iterator[BatchItem] = iter(())
        if good:
            call = Call("POST", api_path("jobs", "batch"), params, body={"jobs": good})
            answers = iter((yield from request_model(BatchReport, call, patience)).items)
        for one in prepared:
            yield Emit(one if isinstance(one, BatchItem) else next(answers))


def _to_body_or_refusal(submission: Submission, new_id: str) -> JsonObject | BatchItem:
    try:
        return to_request_body(submission, new_id)
    except InvalidSubmissionError as error:
        return BatchItem(error=to_refusal(error))
