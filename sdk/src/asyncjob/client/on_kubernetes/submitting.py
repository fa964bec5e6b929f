"""Creating the job of an order exactly once, whatever becomes of the answers.

The name is settled before the first request, so that the request may be repeated: the API server
refuses the second, and who reads the job again knows it by its content.
"""

from asyncjob.client import errors
from asyncjob.client.on_kubernetes.calls import jobs_path, merge_patch_call
from asyncjob.client.on_kubernetes.row import find_other_with_key, next_sequence
from asyncjob.client.steps import Call, RetryBudget, Steps, call_with_retries
from asyncjob.errors import AlreadyExistsError, AsyncJobError, ConflictError, ObjectNotFoundError
from asyncjob.intake import JobManifest, Match, match_existing
from asyncjob.intake.verdict import withdrawal_patch
from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import job_path
from asyncjob.rest.submission import Submitted

MAX_CREATE_TRIES = 20


def submit_job(order: JobManifest, patience: float) -> Steps[Submitted]:
    """Create the job, or find it; raises InTheWayError where another job stands in the way."""
    for _ in range(MAX_CREATE_TRIES):
        wanted = order
        if order.name_prefix:
            found = yield from next_sequence(order, patience)
            if not isinstance(found, int):
                return accept_existing(found, order)
            wanted = order.with_dedup_sequence(found)
        done = yield from _create(wanted, patience)
        if done is not None:
            return done
    raise errors.UnavailableError(f"the name {order.name} is taken and freed again and again")


def _create(order: JobManifest, patience: float) -> Steps[Submitted | None]:
    """Create it; None if the name was taken by what is gone or over by now."""
    waiting, lost = RetryBudget(patience), False
    while True:
        try:
            answer = yield Call("POST", jobs_path(order.namespace), body=order.manifest)
            yield from _withdraw_if_key_taken(order, answer.object, patience, lost=False)
            return to_submitted(answer.object, created=True)
        except AlreadyExistsError:
            return (yield from _match_existing_job(order, patience, lost=lost))
        except ConflictError:  # the namespace is going, or quota was in the way for a moment
            raise
        except AsyncJobError as error:
            yield from waiting.wait_or_raise(error)
            lost = True


def _match_existing_job(
    order: JobManifest, patience: float, *, lost: bool
) -> Steps[Submitted | None]:
    path = job_path(order.namespace, order.name)
    try:
        existing = (yield from call_with_retries(Call("GET", path), patience)).object
    except ObjectNotFoundError:
        return None
    found = match_existing(existing, order)
    if found is Match.FINISHED_DUPLICATE:
        return None
    if found is Match.SAME and lost:
        yield from _withdraw_if_key_taken(order, existing, patience, lost=True)
    return accept_existing(existing, order, created=lost)


def _withdraw_if_key_taken(
    order: JobManifest, job: JsonObject, patience: float, *, lost: bool
) -> Steps[None]:
    """Take back a job of our own if another one had its idempotencyKey before it.

    With a deduplicationId the name keeps the id unique, and the key only as far as a look before
    told. The API server is asked what there was at the moment of the creation: of several jobs
    each but the first sees an earlier one. Where that moment is not known, because the answer was
    lost, any other job counts as earlier: at worst none is accepted, never two.
    """
    if not order.has_both_keys:
        return
    meta = child(job, "metadata")
    version = None if lost else text(meta, "resourceVersion")
    other = yield from find_other_with_key(order, text(meta, "name"), version, patience)
    if other is None:
        return
    yield from call_with_retries(
        merge_patch_call(job_path(order.namespace, order.name), withdrawal_patch()), patience
    )
    raise _key_reused_error(other)


def _key_reused_error(name: str) -> errors.KeyReusedError:
    return errors.KeyReusedError(
        f"idempotencyKey: job {name} was submitted under it with another body;"
        " take a new key for a new job",
        job_id=name,
    )


def accept_existing(
    existing: JsonObject, order: JobManifest, *, created: bool = False
) -> Submitted:
    """Return the existing job as what was ordered; raises InTheWayError if it is another."""
    name = text(child(existing, "metadata"), "name")
    match match_existing(existing, order):
        case Match.SAME:
            return to_submitted(existing, created=created)
        case Match.KEY_REUSED:
            raise _key_reused_error(name)
        case Match.DUPLICATE:
            raise errors.DuplicateJobError(
                f"deduplicationId: job {name} has it and is live; wait until it has finished",
                job_id=name,
            )
        case _:
            raise errors.JobExistsError(f"name: another job is called {name}", job_id=name)


def to_submitted(job: JsonObject, *, created: bool) -> Submitted:
    """Return what a submitter is told of the job."""
    phase = text(child(job, "status"), "phase", Phase.QUEUED)
    return Submitted(id=text(child(job, "metadata"), "name"), created=created, phase=phase)
