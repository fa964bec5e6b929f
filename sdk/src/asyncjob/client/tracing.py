"""Submissions join the trace of the submitter.

Where somebody has set up a tracer provider, each has a span of its own and the job carries that
one's context. Elsewhere it carries what it was given, and nothing is loaded for it.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from asyncjob.rest.submission import Submission, Submitted
from asyncjob.tracing.context import current_traceparent, job_attributes
from asyncjob.tracing.provider import has_provider


@dataclass(frozen=True, slots=True)
class TracedSubmission:
    """A submission as it is to be sent; `record` takes what became of it."""

    submission: Submission
    record: Callable[[Submitted], None]


@contextmanager
def trace_submission(
    submission: Submission, request_traceparent: str | None = None
) -> Generator[TracedSubmission]:
    """Trace a submission while inside.

    `request_traceparent` is the context of the request that it came with. A context that the
    submission itself names comes before that.
    """
    above = submission.traceparent or request_traceparent
    if not has_provider():
        sent = _with_traceparent(submission, above or current_traceparent())
        yield TracedSubmission(sent, lambda _: None)
        return
    from asyncjob.tracing.spans import submission_span

    with submission_span(submission.type, submission.queue, above) as span:
        sent = _with_traceparent(submission, current_traceparent() or above)
        yield TracedSubmission(sent, lambda done: span.set_attributes(job_attributes(done.id)))


def with_current_trace(submission: Submission) -> Submission:
    """Return the submission with the context of the caller's span, unless it names another."""
    return _with_traceparent(submission, submission.traceparent or current_traceparent())


def _with_traceparent(submission: Submission, traceparent: str | None) -> Submission:
    if traceparent == submission.traceparent:
        return submission
    return submission.model_copy(update={"traceparent": traceparent})
