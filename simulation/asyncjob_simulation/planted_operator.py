"""Bugs planted in the operator and the gateway."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from asyncjob.client.kubernetes.client import AsyncKubernetesJobsClient
from asyncjob.errors import AsyncJobError
from asyncjob.json_types import text
from asyncjob.kube.informer import _Reflector
from asyncjob.lifecycle.phase_change import status_merge_patch
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import JOBS, collection_path
from asyncjob.rest.submission import Submitted
from asyncjob.submission.manifest import build_manifest
from asyncjob_operator.cache.queues import QueueCache
from asyncjob_operator.cache.workers import WorkerPodCache
from asyncjob_operator.controllers import job_informer
from asyncjob_operator.controllers.admission import AdmissionRounds
from asyncjob_operator.controllers.job_evaluator import JobEvaluator
from asyncjob_operator.controllers.preconditions import PreconditionChecker
from asyncjob_operator.controllers.workqueue import DelayingQueue
from asyncjob_operator.core import snapshot
from asyncjob_operator.core.admission import plan
from asyncjob_operator.core.decide import DELETION_CHAINS
from asyncjob_operator.core.liveness import proven_loss
from asyncjob_operator.core.policies import deduplication, gates, recovery
from asyncjob_operator.core.schedules import decide as schedule_decisions
from asyncjob_operator.kube import clock as operator_clock
from asyncjob_operator.kube.clock import Clock, current_time
from asyncjob_operator.kube.leader_election import LeaderElector
from asyncjob_operator.operator import Operator
from asyncjob_simulation.planting import (
    READER,
    SIMULATION,
    any_version,
    mutation,
    nothing,
    settable,
    without,
)

# ---- operator: recovery


@mutation("a lease counts from the claim, not from its last heartbeat")
def lease_without_renewals() -> AbstractContextManager[object]:
    return patch.object(snapshot, "_with_renewal", lambda previous, *_: previous)


@mutation("durations are measured by the wall clock")
def operator_by_wall_clock() -> AbstractContextManager[object]:
    return patch.object(operator_clock, "monotonic", settable)


@mutation("that a worker was replaced is not confirmed by a live read")
def replaced_unconfirmed() -> AbstractContextManager[object]:
    async def replaced(*_: object) -> bool:
        return True

    return patch.object(PreconditionChecker, "_is_worker_replaced", replaced)


@mutation("any end of a container is taken for that of the holder", SIMULATION)
def any_container_end() -> AbstractContextManager[object]:
    async def down(*_: object) -> bool:
        return True

    def careless(job: Any, lease: Any, holder: Any, claimed_at: float, now: Any) -> Any:
        pod = holder.pod
        if pod and pod.termination:
            ended = replace(pod.termination, restarted=False)
            holder = replace(holder, pod=replace(pod, termination=ended))
        return proven_loss(job, lease, holder, claimed_at - 60.0, now)

    @contextmanager
    def both() -> Iterator[None]:
        with (
            patch.object(PreconditionChecker, "_is_container_down", down),
            patch("asyncjob_operator.core.policies.recovery.proven_loss", careless),
        ):
            yield

    return both()


@mutation("jobs of silent workers are left alone")
def no_recovery() -> AbstractContextManager[object]:
    return without(Phase.RUNNING, recovery.recover)


@mutation("a decision is written without the version that it was taken on")
def write_without_version() -> AbstractContextManager[object]:
    return patch(
        "asyncjob_operator.controllers.job_reconciler.status_merge_patch",
        lambda fields, _: {**status_merge_patch(fields, ""), "metadata": {}},
    )


# ---- operator: what is known


@mutation("a deletion that the watch tells of is not taken")
def lost_delete() -> AbstractContextManager[object]:
    return patch.object(JobEvaluator, "on_delete_event", nothing)


@mutation("a watch that has lost its place goes on without a comparison")
def no_comparison_after_410() -> AbstractContextManager[object]:
    async def watch_on(self: Any, namespace: str | None) -> None:
        version = self._versions.pop(namespace, "")
        while True:
            version = await self._watch_until_closed(namespace, version)
            self._versions[namespace] = version

    return patch.object(job_informer.JobWatch, "run", watch_on)


@mutation("a comparison repairs nothing")
def blind_comparison() -> AbstractContextManager[object]:
    async def see_nothing(self: Any, namespace: Any) -> Any:
        result = job_informer.ResyncResult()
        async for page in self._session.pages(collection_path(namespace, JOBS)):
            result.version = text(page["metadata"], "resourceVersion")
        return result

    return patch.object(job_informer.JobResync, "run", see_nothing)


@mutation("a job that is to be looked at later is forgotten now and then")
def lost_deadline() -> AbstractContextManager[object]:
    pop = DelayingQueue.pop_due

    def lose(self: Any, now: float, limit: int) -> list[str]:
        due = pop(self, now, limit)
        return due[:-1] if len(due) > 1 else due

    return patch.object(DelayingQueue, "pop_due", lose)


@mutation("an informer goes on with a version that has expired")
def informer_without_relist() -> AbstractContextManager[object]:
    listed = _Reflector._list

    async def once(self: Any) -> str:
        self._session_listed = getattr(self, "_session_listed", "") or await listed(self)
        return str(self._session_listed)

    return patch.object(_Reflector, "_list", once)


@mutation("a late answer replaces newer events of the watch of queues", READER)
def stale_queue_view() -> AbstractContextManager[object]:
    return any_version(QueueCache, "_versions")


@mutation(
    "an answer that comes late brings a pod back as it was",
    READER,
    found_by="pytest tests/properties/operator/test_caches.py",
)
def stale_pod_view() -> AbstractContextManager[object]:
    return any_version(WorkerPodCache, "_pod_versions")


@mutation("an attempt that its worker does not end goes on for as long as it likes")
def execution_not_limited() -> AbstractContextManager[object]:
    return without(Phase.RUNNING, recovery.enforce_execution_timeout)


@mutation("a job that is being deleted is left as it is", READER)
def deleted_job_left_alone() -> AbstractContextManager[object]:
    return patch.dict(DELETION_CHAINS, clear=True)


# ---- operator: election


@mutation("an operator leads before it has listed the jobs", READER)
def lead_before_listing() -> AbstractContextManager[object]:
    return patch.object(Operator, "check_fitness", lambda _: "")


@mutation("all operators have one name in the election", READER)
def one_name_for_all() -> AbstractContextManager[object]:
    make = LeaderElector.__init__

    def init(self: Any, session: Any, namespace: str, name: str, _: str, **more: Any) -> None:
        make(self, session, namespace, name, "operator", **more)

    return patch.object(LeaderElector, "__init__", init)


# ---- operator: gates, limits, cron jobs


@mutation("a removed job that a finalizer keeps is forgotten", SIMULATION)
def forgotten_though_there() -> AbstractContextManager[object]:
    return patch("asyncjob_operator.controllers.retention.items", lambda *_: [])


@mutation("what has ended is removed by the clock of the machine that leads", READER)
def removed_by_own_clock() -> AbstractContextManager[object]:
    return patch.object(Clock, "now", lambda _, jitter=0.5: current_time(jitter))


@mutation("a queue's reservations are given out once more than it allows")
def limit_off_by_one() -> AbstractContextManager[object]:
    free = plan._free_capacity
    return patch.object(plan, "_free_capacity", lambda *args: free(*args) + 1)


@mutation("a reservation is freed as soon as its job is admitted")
def reservation_freed_twice() -> AbstractContextManager[object]:
    states = plan.ReservationState

    def state(self: Any, admission: Any, reservation: Any) -> Any:
        job = self._controller.store.get(reservation.uid)
        admission.active.clear()
        return states.RECLAIMABLE if job and job.admitted else states.WAITING

    return patch.object(AdmissionRounds, "_state", state)


@mutation("reservations of jobs that have ended are kept")
def reservation_never_freed() -> AbstractContextManager[object]:
    states = plan.ReservationState
    return patch.object(AdmissionRounds, "_state", lambda *_: states.WAITING)


@mutation("an admitted job keeps its reservation though no worker serves its type any more", READER)
def kept_without_workers() -> AbstractContextManager[object]:
    return without(Phase.QUEUED, gates.withdraw_unserved)


@mutation("runs that could not be created for minutes are created all the same", READER)
def created_however_late() -> AbstractContextManager[object]:
    return patch.object(
        schedule_decisions, "_runs_still_due", lambda snapshot, _: snapshot.pending_runs
    )


@mutation("concurrency keys are not counted")
def keys_not_counted() -> AbstractContextManager[object]:
    return patch.object(plan, "_active_keys", lambda *_: [])


@mutation("duplicates are not distinguished from the job that keeps the id")
def no_deduplication() -> AbstractContextManager[object]:
    @contextmanager
    def both() -> Iterator[None]:
        with (
            patch.object(JobEvaluator, "_evaluate_duplicates", nothing),
            patch("asyncjob_operator.cache.jobs.JobStore.live_duplicate", nothing),
            without(Phase.QUEUED, deduplication.cancel_duplicate),
            without(Phase.PENDING, deduplication.cancel_duplicate),
        ):
            yield

    return both()


@mutation(
    "a job is admitted without a live look for others with its id",
    SIMULATION,
    found_by="make prove ONLY=protocol",
)
def admitted_by_late_view() -> AbstractContextManager[object]:
    async def nobody(*_: object) -> bool:
        return False

    return patch.object(PreconditionChecker, "_has_live_duplicate", nobody)


@mutation("dependencies are not waited for")
def no_dependencies() -> AbstractContextManager[object]:
    left = (gates.not_before_gate, gates.suspend_gate)
    return patch.object(gates, "GATES", left)


@mutation("a parked job is not woken")
def leave_parked() -> AbstractContextManager[object]:
    return patch.object(gates, "_wake", lambda *_: None)


@mutation("start times are not waited for")
def no_start_times() -> AbstractContextManager[object]:
    left = (gates.suspend_gate, gates.dependency_gate)
    return patch.object(gates, "GATES", left)


# ---- gateway


@mutation("a submission whose answer was lost counts as accepted")
def accept_without_answer() -> AbstractContextManager[object]:
    submit = AsyncKubernetesJobsClient.submit_manifest

    async def hope(self: Any, manifest: Any) -> Submitted:
        try:
            return await submit(self, manifest)
        except AsyncJobError as error:
            if not error.retryable or manifest.name_prefix:
                raise
            return Submitted(id=manifest.name, created=True, phase="Queued")

    return patch.object(AsyncKubernetesJobsClient, "submit_manifest", hope)


@mutation("an idempotency key does not name the job")
def key_without_effect() -> AbstractContextManager[object]:
    def forget(submission: Any, *args: Any, **more: Any) -> Any:
        return build_manifest(
            submission.model_copy(update={"idempotency_key": None}), *args, **more
        )

    return patch("asyncjob_gateway.operations.build_manifest", forget)
