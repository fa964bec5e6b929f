"""Submissions join the trace of whoever submits.

Where somebody has set up a tracer provider, each has a span of its own and the job carries that
one's context. Elsewhere it carries what it was given, and nothing is loaded for it.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from asyncjob.rest.submission import Submission, Submitted
from asyncjob.tracing.attributes import of_job
from asyncjob.tracing.context import current_traceparent
from asyncjob.tracing.provider import has_provider


@dataclass(frozen=True, slots=True)
class Traced:
    """A submission as it is to be sent; `done` takes what became of it."""

    submission: Submission
    done: Callable[[Submitted], None] = lambda _: None


@contextmanager
def traced(submission: Submission, given: str | None = None) -> Generator[Traced]:
    """Trace a submission while inside; `given` is the context of the request that it came with.

    A context that the submission itself names comes before that.
    """
    above = submission.traceparent or given
    if not has_provider():
        yield Traced(_carrying(submission, above or current_traceparent()))
        return
    from asyncjob.tracing.submitting import submitting

    with submitting(submission.type, submission.queue, above) as span:
        sent = _carrying(submission, current_traceparent() or above)
        yield Traced(sent, lambda done: span.set_attributes(of_job(done.id)))


def in_current_trace(submission: Submission) -> Submission:
    """Return the submission with the context of the caller's span, unless it names another."""
    return _carrying(submission, submission.traceparent or current_traceparent())


def _carrying(submission: Submission, traceparent: str | None) -> Submission:
    if traceparent == submission.traceparent:
        return submission
    return submission.model_copy(update={"traceparent": traceparent})
