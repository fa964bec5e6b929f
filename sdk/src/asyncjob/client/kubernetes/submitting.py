"""Creates the job of a submission exactly once, even if responses are lost.

The name is chosen before the first request, so the request may be repeated: the API server refuses
the second, and a read recognises the job by its fingerprint.

With a deduplicationId the next free sequence number is needed. It is read in this order, each time
consistently: the newest number, a job with the same key, a live job. A submitter at the same time
is either seen by the last read or takes the same number, which the API server gives away once. What
was read is valid for 30 seconds; finished jobs with such an id are kept for a day, so no number
read as taken has become free by then.
"""

from typing import Final

from asyncjob import names
from asyncjob.client import errors
from asyncjob.client.connection import Call, RetryBudget
from asyncjob.client.errors import DuplicateJobError, UnavailableError
from asyncjob.client.kubernetes.calls import KubernetesCalls, ParamPairs, jobs_path
from asyncjob.errors import AlreadyExistsError, AsyncJobError, ConflictError, ObjectNotFoundError
from asyncjob.json_types import JsonObject, as_object, child, items, text
from asyncjob.kube.session import METADATA_LIST_TYPE
from asyncjob.lifecycle.deduplication import is_live, unfinished_with_id
from asyncjob.lifecycle.job_view import read_job
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import job_path
from asyncjob.rest.submission import Submitted
from asyncjob.submission import JobManifest, Match, match_existing, sequence_of
from asyncjob.submission.matching import has_same_key, withdrawal_patch


async def check_no_live_duplicate(api: KubernetesCalls, job: JsonObject) -> None:
    """Raise DuplicateJobError if another live job has the id of this dead letter."""
    held = text(child(job, "spec"), "deduplicationId")
    if not held:
        return
    meta = child(job, "metadata")
    path = jobs_path(text(meta, "namespace"))
    params = (("fieldSelector", unfinished_with_id(held)),)
    for name in await api.list_all(path, params, _name_if_live):
        raise DuplicateJobError(
            f"deduplicationId: job {name} has it and is live; redrive {text(meta, 'name')} once"
            " that has finished",
            job_id=name,
        )


def _name_if_live(job: JsonObject) -> str | None:
    return _name(job) if is_live(read_job(job)) else None


READ_VALID_SECONDS: Final = 30.0
"""What was read is acted on for this long, or else read again. Who paused for longer could create
the number of a job that was deleted since, and so a second live job of one id."""

_MAX_READS: Final = 5
"""Reads until the caller is told that they take too long, or that one of two is not withdrawn."""

_WITHDRAWAL_WAIT_SECONDS: Final = 0.5
"""A submitter that came second needs two requests to take its job back."""


async def next_sequence(api: KubernetesCalls, submission: JobManifest) -> int | JsonObject:
    """Return the number to create the job under, or the job that is there already."""
    for _ in range(_MAX_READS):
        began = api.connection.time()
        newest = await _newest_sequence(api, submission)
        there = await _find_with_key(api, submission) or await _find_live(api, submission)
        if there is not None:
            return there
        if api.connection.time() - began <= READ_VALID_SECONDS:
            return newest + 1
    raise UnavailableError("looking for jobs with the same deduplicationId takes too long")


async def _newest_sequence(api: KubernetesCalls, submission: JobManifest) -> int:
    """Return the highest number in use; names count down, so that it comes first."""
    page = await api.get(
        jobs_path(submission.namespace),
        (("labelSelector", _key_selector(submission, names.DEDUPLICATION_LABEL)), ("limit", "1")),
        accept=METADATA_LIST_TYPE,
    )
    found = map(as_object, items(page, "items"))
    return max((sequence_of(_name(one), submission.name_prefix) for one in found), default=0)


async def _find_with_key(api: KubernetesCalls, submission: JobManifest) -> JsonObject | None:
    """Return the job with the submission's key, finished or not.

    Of two, one is about to be withdrawn, because the other was quicker: that is waited for. Two are
    all that is kept: who may create jobs can make thousands with one key, each as large as can be.
    """

    def is_other(job: JsonObject) -> bool:
        return match_existing(job, submission) is not Match.SAME

    params = (("labelSelector", _key_selector(submission, names.IDEMPOTENCY_LABEL)),)
    found: list[JsonObject] = []
    for _ in range(_MAX_READS):
        found = await api.list_all(
            jobs_path(submission.namespace),
            params,
            lambda job: job if has_same_key(job, submission) else None,
            reduce=lambda jobs: sorted(jobs, key=is_other)[:2],
        )
        if len(found) < 2:  # noqa: PLR2004  # one job has the key, as it should be
            break
        await api.connection.pause(_WITHDRAWAL_WAIT_SECONDS)
    return next(iter(found), None)


async def _find_live(api: KubernetesCalls, submission: JobManifest) -> JsonObject | None:
    """Return a live job with the id, no matter who created it: also one applied with kubectl."""
    found = await api.list_all(
        jobs_path(submission.namespace),
        (("fieldSelector", unfinished_with_id(submission.deduplication_id or "")),),
        lambda job: job if has_same_key(job, submission) or is_live(read_job(job)) else None,
        reduce=lambda jobs: sorted(jobs, key=lambda job: not has_same_key(job, submission))[:1],
    )
    return next(iter(found), None)


async def find_other_with_key(
    api: KubernetesCalls, submission: JobManifest, name: str, version: str | None
) -> str | None:
    """Return another job than that of this name that has the submission's key, by its name.

    With a version, as of that version, and not as of now. The label alone says nothing: anyone who
    may create a job can give it any. So whole jobs are read, but only where the label has been
    given to another at all.
    """
    path = jobs_path(submission.namespace)
    params: ParamPairs = (("labelSelector", _key_selector(submission, names.IDEMPOTENCY_LABEL)),)
    if version:
        params += (("resourceVersion", version), ("resourceVersionMatch", "Exact"))

    def name_of_other(job: JsonObject) -> str | None:
        return _name(job) if _name(job) != name else None

    if not await api.list_all(
        path, params, name_of_other, accept=METADATA_LIST_TYPE, reduce=lambda names: names[:1]
    ):
        return None
    others = await api.list_all(
        path, params, lambda job: name_of_other(job) if has_same_key(job, submission) else None
    )
    return next(iter(others), None)


def _name(obj: JsonObject) -> str:
    return text(child(obj, "metadata"), "name")


def _key_selector(submission: JobManifest, label: str) -> str:
    return f"{label}={text(submission.labels, label)}"


MAX_CREATE_TRIES = 20
"""Each starts over because another submitter was quicker, or a job was deleted meanwhile; without a
limit a crowd could keep one of them from ever getting an answer."""


async def submit_job(api: KubernetesCalls, submission: JobManifest) -> Submitted:
    """Create the job, or find it; raises InTheWayError where another job stands in the way."""
    for _ in range(MAX_CREATE_TRIES):
        wanted = submission
        if submission.name_prefix:
            found = await next_sequence(api, submission)
            if not isinstance(found, int):
                return accept_existing(found, submission)
            wanted = submission.with_dedup_sequence(found)
        done = await _create(api, wanted)
        if done is not None:
            return done
    raise errors.UnavailableError(f"the name {submission.name} is taken and freed again and again")


async def _create(api: KubernetesCalls, submission: JobManifest) -> Submitted | None:
    """Create it; None if the name was taken by what is gone or over by now."""
    waiting, lost = RetryBudget(api.connection, api.patience), False
    call = Call("POST", jobs_path(submission.namespace), body=submission.manifest)
    while True:
        try:
            job = (await api.send_once(call)).object
            await _withdraw_if_key_taken(api, submission, job, lost=False)
            return to_submitted(job, created=True)
        except AlreadyExistsError:
            return await _match_existing_job(api, submission, lost=lost)
        except ConflictError:  # the namespace is going, or quota was in the way for a moment
            raise
        except AsyncJobError as error:
            await waiting.wait_or_raise(error)
            lost = True


async def _match_existing_job(
    api: KubernetesCalls, submission: JobManifest, *, lost: bool
) -> Submitted | None:
    try:
        existing = await api.get(job_path(submission.namespace, submission.name))
    except ObjectNotFoundError:
        return None
    found = match_existing(existing, submission)
    if found is Match.FINISHED_DUPLICATE:
        return None
    if found is Match.SAME and lost:
        await _withdraw_if_key_taken(api, submission, existing, lost=True)
    return accept_existing(existing, submission, created=lost)


async def _withdraw_if_key_taken(
    api: KubernetesCalls, submission: JobManifest, job: JsonObject, *, lost: bool
) -> None:
    """Take back a job of our own if another one had its idempotencyKey before it.

    With a deduplicationId the name keeps the id unique, and the key only as far as a look before
    told. The API server is asked what there was at the moment of the creation: of several jobs
    each but the first sees an earlier one. Where that moment is not known, because the answer was
    lost, any other job counts as earlier: at worst none is accepted, never two.
    """
    if not submission.has_both_keys:
        return
    meta = child(job, "metadata")
    version = None if lost else text(meta, "resourceVersion")
    other = await find_other_with_key(api, submission, text(meta, "name"), version)
    if other is None:
        return
    await api.merge_patch(job_path(submission.namespace, submission.name), withdrawal_patch())
    raise _key_reused_error(other)


def _key_reused_error(name: str) -> errors.KeyReusedError:
    return errors.KeyReusedError(
        f"idempotencyKey: job {name} was submitted under it with another body;"
        " take a new key for a new job",
        job_id=name,
    )


def accept_existing(
    existing: JsonObject, submission: JobManifest, *, created: bool = False
) -> Submitted:
    """Return the existing job as the submitted one; raises InTheWayError if it is another."""
    name = text(child(existing, "metadata"), "name")
    match match_existing(existing, submission):
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
