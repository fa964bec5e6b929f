"""Sets the control fields of a job, which the operator acts on: cancel, suspend, redrive, rerun.

A change is decided on what was read, and written once. A lost response is followed by another read:
a change that is there by then, or has been acted on, is not made again. Bulk actions do the same
for many dead letters, oldest first; each succeeds or fails by itself.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from asyncjob.client import errors
from asyncjob.client.kubernetes.calls import KubernetesCalls, resource_version, translate_errors
from asyncjob.client.kubernetes.jobs import list_jobs
from asyncjob.errors import AsyncJobError, ConflictError, InvalidError, message_of
from asyncjob.json_types import Json, JsonObject, child, flag, integer, opt_integer, text
from asyncjob.lifecycle.job_view import deadline_of, too_late_to_redrive
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.timestamps import parse_timestamp
from asyncjob.names import job_path
from asyncjob.rest.jobs import JobSummary
from asyncjob.rest.listing import BulkAsk, BulkFailure, BulkReport, Selection

MAX_WRITE_TRIES: Final = 10
"""Conflicts in a row until the caller is told. Each means that another write came between reading
and writing; an object that is written all the time would otherwise keep the caller for good."""

POLL_ACKNOWLEDGED_SECONDS: Final = 0.3
"""Between reads of a job that the operator has yet to act on. Each is a request; much longer would
keep the caller waiting for what has been done."""

DecideChange = Callable[[JsonObject], JsonObject | None]
"""Spec of the job as read → what to change of it, None for nothing; raises where it may not be."""


CheckJob = Callable[[KubernetesCalls, JsonObject], Awaitable[None]]
"""Job as read → nothing; raises where what else there is forbids the change."""


WhyNot = Callable[[JobSummary], str | None]
"""Job of a list → why it is not even tried, None for any other."""


async def apply_change(
    api: KubernetesCalls, path: str, decide: DecideChange, check: CheckJob | None = None
) -> JsonObject:
    """Apply a change and return the job; NotFoundError passes through."""
    refusal: InvalidError | None = None
    for _ in range(MAX_WRITE_TRIES):
        job = await api.get(path)
        change = decide(job)
        if change is None:
            return job
        if refusal is not None:
            raise errors.JobStateError(str(refusal)) from refusal
        if check is not None:
            await check(api, job)
        body = {"metadata": {"resourceVersion": resource_version(job)}, "spec": change}
        del job  # it may be large, and a gateway does this for many callers at once
        try:
            return await api.merge_patch(path, body)
        except ConflictError:
            continue
        except InvalidError as error:
            refusal = error
    raise errors.UnavailableError("the object changes faster than the request can be written")


def set_cancel(*, cascade: bool) -> DecideChange:
    """Return the change that requests a cancel, or dismisses a dead letter."""

    def decide(job: JsonObject) -> JsonObject | None:
        spec, phase = child(job, "spec"), _phase(job)
        if phase is Phase.SUCCEEDED:
            raise errors.NotCancellableError(
                f"job {_name(job)} has succeeded: there is nothing left to cancel"
            )
        wanted: dict[str, Json] = {"cancel": True, **({"cancelCascade": True} if cascade else {})}
        done = phase is Phase.CANCELLED and not cascade
        return None if done or all(flag(spec, name) for name in wanted) else wanted

    return decide


def set_dismissed(job: JsonObject) -> JsonObject | None:
    """Return the change that dismisses a dead letter."""
    spec = child(job, "spec")
    if flag(spec, "cancel") and _phase(job) in {Phase.DEAD_LETTER, Phase.CANCELLED}:
        return None
    _check_dead_letter(job)
    return {"cancel": True}


def set_field(name: str, value: Json, default: Json) -> DecideChange:
    """Return the change that sets a field; `default` is what an absent one means."""

    def decide(job: JsonObject) -> JsonObject | None:
        return None if child(job, "spec").get(name, default) == value else {name: value}

    return decide


@dataclass(slots=True)
class RedriveRequest:
    """The request to run a dead letter again; its number is set by the first read.

    `now` is asked as it decides: a deadline is a time of the API server's clock.
    """

    now: Callable[[], datetime]
    number: int = 0

    def __call__(self, job: JsonObject) -> JsonObject | None:
        """Decide."""
        requested, done = _requested_and_acknowledged(job, "redrive", "redrives")
        if (self.number and max(requested, done) >= self.number) or requested > done:
            return None
        _check_dead_letter(job)
        _check_in_time(job, self.now())
        self.number = max(requested, done) + 1
        return {"redrive": self.number}


@dataclass(slots=True)
class ControlCounter:
    """A control field that counts up: `spec_field` asks, `status_field` acknowledges."""

    spec_field: str
    status_field: str
    number: int = 0

    def __call__(self, obj: JsonObject) -> JsonObject | None:
        """Decide; ask `is_unacknowledged` first whether an earlier request is pending."""
        requested, done = _requested_and_acknowledged(obj, self.spec_field, self.status_field)
        if self.number and max(requested, done) >= self.number:
            return None
        self.number = max(requested, done) + 1
        return {self.spec_field: self.number}

    def is_unacknowledged(self, obj: JsonObject) -> bool:
        """Return whether an earlier request is pending: a higher number would replace it."""
        requested, done = _requested_and_acknowledged(obj, self.spec_field, self.status_field)
        return requested > done


async def raise_counter(api: KubernetesCalls, path: str, counter: ControlCounter) -> JsonObject:
    """Request once more, after the request before has been acted on; returns the object."""
    since: float | None = None
    while True:
        if not counter.is_unacknowledged(await api.get(path)):
            return await apply_change(api, path, counter)
        now = api.connection.time()
        since = now if since is None else since
        if now - since >= api.patience:
            raise errors.UnavailableError(
                f"spec.{counter.spec_field}: an earlier one has not been acted on; does the "
                "operator run?"
            )
        await api.connection.pause(POLL_ACKNOWLEDGED_SECONDS)


def _requested_and_acknowledged(
    obj: JsonObject, spec_field: str, status_field: str
) -> tuple[int, int]:
    return integer(child(obj, "spec"), spec_field), integer(child(obj, "status"), status_field)


def _check_dead_letter(job: JsonObject) -> None:
    if _phase(job) is not Phase.DEAD_LETTER:
        raise errors.NotADeadLetterError(
            f"job {_name(job)} is {_phase(job).value}; only a dead letter can be redriven or"
            " dismissed"
        )


def _check_in_time(job: JsonObject, now: datetime) -> None:
    """Raise JobStateError if the job's deadline has passed: the operator would not redrive it."""
    created = text(child(job, "metadata"), "creationTimestamp")
    deadline = deadline_of(created, opt_integer(child(job, "spec"), "deadlineSeconds"))
    if refusal := _too_late(_name(job), deadline, now):
        raise errors.JobStateError(refusal)


def why_too_late(job: JobSummary, *, now: Callable[[], datetime]) -> str | None:
    """Return why a dead letter is not redriven whose deadline has passed; None in time."""
    return _too_late(job.id, job.deadline_at, now())


def _too_late(name: str, deadline: str | None, now: datetime) -> str | None:
    if deadline is None or now < parse_timestamp(deadline):
        return None
    return too_late_to_redrive(name, deadline)


def _phase(job: JsonObject) -> Phase:
    return Phase(text(child(job, "status"), "phase", Phase.QUEUED))


def _name(job: JsonObject) -> str:
    return text(child(job, "metadata"), "name")


async def change_dead_letters(
    api: KubernetesCalls,
    namespace: str,
    request: BulkAsk,
    new_change: Callable[[], DecideChange],
    now: datetime,
    *,
    check: CheckJob | None = None,
    why_not: WhyNot = lambda _: None,
) -> BulkReport:
    """Apply a change to those that match, `limit` at most; a dry run only returns which.

    Those that `why_not` names are told as failures, `limit` at most as well; more are not counted.
    They keep no place from those behind them: they would be the oldest each time.
    """
    found: list[JobSummary] = []
    if _selects_dead_letters(request.selection):
        found = await list_jobs(api, namespace, _dead_letters_only(request.selection), now)
    judged = [(job.id, why_not(job)) for job in reversed(found)]
    meant = [name for name, refusal in judged if refusal is None][: request.limit]
    refused = [(name, refusal) for name, refusal in judged if refusal is not None]
    failed = [BulkFailure(id=name, detail=why) for name, why in refused[: request.limit]]
    matched = len(found) - len(refused) + len(failed)
    if request.dry_run:
        return BulkReport(matched=matched, done=meant, failed=failed, dry_run=True)
    done: list[str] = []
    for name in meant:
        try:
            with translate_errors():
                await apply_change(api, job_path(namespace, name), new_change(), check)
            done.append(name)
        except AsyncJobError as error:
            failed.append(BulkFailure(id=name, detail=message_of(error)))
            if error.retryable:
                api = replace(api, patience=0.0)  # it was waited for once
    return BulkReport(matched=matched, done=done, failed=failed)


def _dead_letters_only(selection: Selection) -> Selection:
    return selection.model_copy(update={"phase": [Phase.DEAD_LETTER]})


def _selects_dead_letters(selection: Selection) -> bool:
    return selection.phase is None or Phase.DEAD_LETTER in selection.phase
