"""Bugs planted in the worker."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from asyncjob.errors import ApiError, UnknownOutcomeError
from asyncjob.kube.informer import _Reflector
from asyncjob.lifecycle.phases import Phase
from asyncjob_simulation.planting import READER, SIMULATION, mutation, nothing, settable
from asyncjob_worker import components
from asyncjob_worker.claiming.claimer import Claimer, _ClaimRequest
from asyncjob_worker.claiming.feed import BacklogFeed
from asyncjob_worker.clock import wall_seconds
from asyncjob_worker.execution import attempt_steps
from asyncjob_worker.execution.runner import JobRunner
from asyncjob_worker.leases import heartbeat, held_job, outcome_writer, ownership
from asyncjob_worker.leases.heartbeat import HeartbeatSender, HeartbeatThread
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.outcome_writer import _OutcomeWrite
from asyncjob_worker.leases.ownership import Ownership, OwnershipCheck
from asyncjob_worker.leases.patches import renewal_patch
from asyncjob_worker.leases.registration import WorkerRegistration

# ---- worker: claims


@mutation("after a lost answer any claim that is stored counts as our own")
def adopt_without_token_check() -> AbstractContextManager[object]:
    async def find(self: Any, request: Any, error: ApiError) -> Any:
        job = await self._session.get(request.path.removesuffix("/status"))
        if job["status"].get("phase") != Phase.RUNNING:
            raise error
        return job

    return patch.object(Claimer, "_find_claimed", find)


@mutation(
    "a claim that may be stored is given up when the next try is throttled or refused", READER
)
def drop_doubtful_claim() -> AbstractContextManager[object]:
    async def after(self: Any, request: Any, error: ApiError) -> Any:
        if isinstance(error, UnknownOutcomeError):
            request.outcome_unknown = True
            return None
        raise error

    return patch.object(Claimer, "_after_error", after)


@mutation("a handler starts although its lease has ended while the process stood still", READER)
def start_without_lease() -> AbstractContextManager[object]:
    return patch.object(HeldJob, "fence_if_expired", nothing)


@mutation("jobs that have become claimable are not taken into the backlog after the first")
def lost_wakeup() -> AbstractContextManager[object]:
    update = BacklogFeed.update

    def forget(self: Any, candidate: Any, *, deleted: bool = False) -> None:
        known = self.__dict__.setdefault("known", set())
        if candidate is None or deleted or candidate.name not in known:
            update(self, candidate, deleted=deleted)
        if candidate is not None:
            (known.discard if deleted else known.add)(candidate.name)

    return patch.object(BacklogFeed, "update", forget)


# ---- worker: leases


@mutation("a job whose heartbeats do not get through runs on")
def never_fence() -> AbstractContextManager[object]:
    @contextmanager
    def both() -> Iterator[None]:
        with (
            patch.object(HeartbeatThread, "_is_lost", lambda *_: False),
            patch.object(HeldJob, "fence_if_expired", nothing),
        ):
            yield

    return both()


@mutation("the end of a lease is read off the wall clock")
def expiry_by_wall_clock() -> AbstractContextManager[object]:
    @contextmanager
    def both() -> Iterator[None]:
        with (
            patch.object(heartbeat, "boottime", settable),
            patch.object(held_job, "boottime", settable),
            patch("asyncjob_worker.claiming.claimer.boottime", settable),
            patch("asyncjob_worker.execution.handler_task.boottime", settable),
            patch("asyncjob_worker.execution.attempt.boottime", settable),
            patch.object(outcome_writer, "boottime", settable),
        ):
            yield

    return both()


@mutation(
    "the end of one claim ends heartbeats and stops of the next claim of the same job",
    READER,
    found_by="pytest tests/properties/worker/test_claims_of_a_worker.py",
)
def heartbeats_by_job() -> AbstractContextManager[object]:
    remove = JobRunner._remove

    def remove_all(self: Any, held: HeldJob) -> None:
        for other in list(self.running):
            if other.job.uid == held.job.uid:
                remove(self, other)

    return patch.object(JobRunner, "_remove", remove_all)


@mutation("a drain releases jobs whose handlers have not ended", READER)
def release_beside_handler() -> AbstractContextManager[object]:
    return patch.object(JobRunner, "_outlives_drain", lambda *_: False)


@mutation("a worker that was asked to end asks to be restarted, as all its handlers stay", READER)
def restart_after_sigterm() -> AbstractContextManager[object]:
    def whenever(self: JobRunner) -> bool:
        return self.abandoned == self._slots

    return patch.object(JobRunner, "_is_exhausted", whenever)


@mutation("a watch that breaks off lists everything again", READER)
def list_after_break() -> AbstractContextManager[object]:
    look = _Reflector.list_and_watch

    async def forget(self: Any) -> ApiError | None:
        error = await look(self)
        if error is not None:
            self._version = None
        return error

    return patch.object(_Reflector, "list_and_watch", forget)


@mutation("a token that is refused once proves that the job is lost", READER)
def refused_token_fences() -> AbstractContextManager[object]:
    return patch.object(ownership, "UNAUTHORIZED_SECONDS", 0.0)


@mutation("only the heartbeat thread stops handlers in time, and it may hang", SIMULATION)
def fenced_by_one_thread() -> AbstractContextManager[object]:
    return patch.object(JobRunner, "fence_expired", nothing)


@mutation(
    "only the event loop kills handlers in processes of their own",
    READER,
    found_by="pytest tests/properties/worker/test_fencing.py",
)
def killed_by_event_loop() -> AbstractContextManager[object]:
    return patch.object(HeartbeatThread, "_kill", nothing)


@mutation("a worker's Lease is written whatever has been written there since", SIMULATION)
def lease_without_version() -> AbstractContextManager[object]:
    async def write(self: Any, body: Any) -> None:
        self._note(await self._session.merge_patch(self._path, body))

    return patch.object(WorkerRegistration, "_patch", write)


@mutation("a worker that gets SIGTERM while it starts leaves its Lease behind", READER)
def lease_left_behind() -> AbstractContextManager[object]:
    deregister = WorkerRegistration.deregister

    async def only_after_drain(self: Any) -> None:
        if self._lease.draining:
            await deregister(self)

    return patch.object(WorkerRegistration, "deregister", only_after_drain)


@mutation("the lease of a claim that was throttled counts from when it was sent first", SIMULATION)
def throttled_claim() -> AbstractContextManager[object]:
    return patch.object(_ClaimRequest, "on_send", nothing)


@mutation("a heartbeat whose answer was lost is never taken for stored")
def forget_lost_heartbeat() -> AbstractContextManager[object]:
    return patch.object(HeartbeatSender, "_adopt_unconfirmed", nothing)


@mutation("a heartbeat that failed counts as stored")
def count_failed_heartbeat() -> AbstractContextManager[object]:
    def record(_: Any, held: HeldJob, sent_at: float, __: Exception) -> None:
        held.sent_at = sent_at

    return patch.object(HeartbeatSender, "_record_unconfirmed", record)


@mutation("heartbeats name neither claim, attempt nor the heartbeat before")
def renew_without_fence() -> AbstractContextManager[object]:
    def unfenced(held: HeldJob, report: Any, now: str) -> Any:
        return [one for one in renewal_patch(held, report, now) if one["op"] != "test"]

    return patch.object(heartbeat, "renewal_patch", unfenced)


# ---- worker: waits


@mutation("a sleep ends by the clock of the worker's machine")
def sleep_by_own_clock() -> AbstractContextManager[object]:
    return patch.object(components, "_server_time", lambda _: wall_seconds())


@mutation("a sleep begins again with each attempt")
def sleep_begins_again() -> AbstractContextManager[object]:
    return patch.object(attempt_steps, "waits_of", lambda _: {})


# ---- worker: outcomes


@mutation("an outcome whose answer is lost is not looked for again")
def give_up_outcome() -> AbstractContextManager[object]:
    async def after(*_: object) -> bool:
        return False

    return patch.object(_OutcomeWrite, "_after_error", after)


@mutation("a job that is somebody else's counts as held")
def believe_in_the_claim() -> AbstractContextManager[object]:
    def held(check: OwnershipCheck) -> OwnershipCheck:
        is_fenced = check.ownership is Ownership.FENCED and check.status
        return replace(check, ownership=Ownership.HELD) if is_fenced else check

    evaluate = _OutcomeWrite._evaluate
    return patch.object(_OutcomeWrite, "_evaluate", lambda self, check: evaluate(self, held(check)))
