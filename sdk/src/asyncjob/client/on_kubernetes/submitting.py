"""Creating the job of an order exactly once, whatever becomes of the answers.

The name is settled before the first request, so that the request may be repeated: the API server
refuses the second, and who reads the job again knows it by its content.
"""

from asyncjob.client import errors
from asyncjob.client.on_kubernetes.calls import jobs, patch
from asyncjob.client.on_kubernetes.row import free_number, other_with_key
from asyncjob.client.steps import Call, Patience, Steps, patiently
from asyncjob.errors import AlreadyExistsError, AsyncJobError, ConflictError, NotFoundError
from asyncjob.intake import Order, Verdict, verdict
from asyncjob.intake.verdict import withdrawal
from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import job_path
from asyncjob.rest.submission import Submitted

TRIES = 20


def submit(order: Order, patience: float) -> Steps[Submitted]:
    """Create the job, or find it; raises InTheWayError where another job stands in the way."""
    for _ in range(TRIES):
        wanted = order
        if order.stem:
            found = yield from free_number(order, patience)
            if not isinstance(found, int):
                return judge(found, order)
            wanted = order.numbered(found)
        done = yield from _create(wanted, patience)
        if done is not None:
            return done
    raise errors.UnavailableError(f"the name {order.name} is taken and freed again and again")


def _create(order: Order, patience: float) -> Steps[Submitted | None]:
    """Create it; None if the name was taken by what is gone or over by now."""
    waiting, lost = Patience(patience), False
    while True:
        try:
            answer = yield Call("POST", jobs(order.namespace), body=order.body)
            yield from _settle(order, answer.object, patience, lost=False)
            return submitted(answer.object, created=True)
        except AlreadyExistsError:
            return (yield from _compare(order, patience, lost=lost))
        except ConflictError:  # the namespace is going, or quota was in the way for a moment
            raise
        except AsyncJobError as error:
            yield from waiting.outlast(error)
            lost = True


def _compare(order: Order, patience: float, *, lost: bool) -> Steps[Submitted | None]:
    path = job_path(order.namespace, order.name)
    try:
        existing = (yield from patiently(Call("GET", path), patience)).object
    except NotFoundError:
        return None
    found = verdict(existing, order)
    if found is Verdict.OVER:
        return None
    if found is Verdict.SAME and lost:
        yield from _settle(order, existing, patience, lost=True)
    return judge(existing, order, created=lost)


def _settle(order: Order, job: JsonObject, patience: float, *, lost: bool) -> Steps[None]:
    """Take back a job of our own if another one had its idempotencyKey before it.

    With a deduplicationId the name keeps the id unique, and the key only as far as a look before
    told. The API server is asked what there was at the moment of the creation: of several jobs
    each but the first sees an earlier one. Where that moment is not known, because the answer was
    lost, any other job counts as earlier: at worst none is accepted, never two.
    """
    if not order.both:
        return
    meta = child(job, "metadata")
    version = None if lost else text(meta, "resourceVersion")
    other = yield from other_with_key(order, text(meta, "name"), version, patience)
    if other is None:
        return
    yield from patiently(patch(job_path(order.namespace, order.name), withdrawal()), patience)
    raise _reused(other)


def _reused(name: str) -> errors.KeyReusedError:
    return errors.KeyReusedError(
        f"idempotencyKey: job {name} was submitted under it with another body;"
        " take a new key for a new job",
        job_id=name,
    )


def judge(existing: JsonObject, order: Order, *, created: bool = False) -> Submitted:
    """Return the existing job as what was ordered; raises InTheWayError if it is another."""
    name = text(child(existing, "metadata"), "name")
    match verdict(existing, order):
        case Verdict.SAME:
            return submitted(existing, created=created)
        case Verdict.OTHER_CONTENT:
            raise _reused(name)
        case Verdict.DUPLICATE:
            raise errors.DuplicateJobError(
                f"deduplicationId: job {name} has it and is live; wait until it has finished",
                job_id=name,
            )
        case _:
            raise errors.JobExistsError(f"name: another job is called {name}", job_id=name)


def submitted(job: JsonObject, *, created: bool) -> Submitted:
    """Return what a submitter is told of the job."""
    phase = text(child(job, "status"), "phase", Phase.QUEUED)
    return Submitted(id=text(child(job, "metadata"), "name"), created=created, phase=phase)
