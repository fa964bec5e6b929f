"""How a job becomes ours, whatever the answers are."""

from dataclasses import replace
from typing import Any

import pytest

from asyncjob.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    ObjectNotFoundError,
    ThrottledError,
    TooLargeError,
    UnauthorizedError,
    UnknownOutcomeError,
)
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.claim import Candidate, LeaseHolder
from asyncjob.lifecycle.policy import PolicyLayer
from asyncjob.names import JOBS, collection_path
from asyncjob_simulation.apiserver import Fault, MemoryAccess, MemoryConnections, ScriptedFaults
from asyncjob_worker.claiming.claimer import Claimer
from asyncjob_worker.claiming.queue_state import QueueState
from asyncjob_worker.clock import boottime
from asyncjob_worker.leases.heartbeat_lag import HeartbeatLag
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.ownership import EnforcementCheck
from support.cluster.identities import Space
from support.in_memory.memory import memory_admin, memory_server
from support.objects.builders import job as raw_job
from support.parts.callbacks import ignore
from support.parts.worker_parts import ME, Call, Pauses, ScriptedSession, an_app, candidate, job

LOST = UnknownOutcomeError("no answer")
TAKEN = ConflictError("changed")
SHORT = candidate(policy=PolicyLayer(lease_duration_seconds=5))


def claimer(session: ScriptedSession, pauses: Pauses | None = None) -> Claimer:
    queue = QueueState(lambda: None, on_unlimited=ignore)
    enforcement = EnforcementCheck(session.session, required=False)
    late = HeartbeatLag(0.25, lambda: 0.0)
    return Claimer(
        session.session, an_app(), queue, ME, enforcement, lag=late, pause=pauses or Pauses()
    )


async def claim(session: ScriptedSession, of: Candidate | None = None) -> HeldJob | None:
    return await claimer(session).claim(of or candidate())


def ours(call: Call) -> dict[str, Any]:
    """Answer as the API server does where the claim takes effect."""
    return job(**{name: value for name, value in call.body["status"].items() if value is not None})


class Store:
    """Takes the first claim and can lose answers.

    A script, as the order of answers is the case: each is told when to be lost.
    """

    def __init__(self) -> None:
        self.stored: dict[str, Any] = job(claim="", phase="Queued")

    def take(self, call: Call) -> dict[str, Any]:
        self.stored = ours(call)
        return self.stored

    def take_and_lose_the_answer(self, call: Call) -> Exception:
        self.take(call)
        return LOST

    def read(self, _: Call) -> dict[str, Any]:
        return self.stored


async def test_a_claim_is_one_write_on_the_version_seen() -> None:
    session = ScriptedSession(merge_patch=[ours])
    held = await claim(session)
    assert held
    (call,) = session.calls
    assert call.body["metadata"] == {"resourceVersion": "7"}
    assert call.body["status"]["attempt"] == 1
    assert held.claim == call.body["status"]["claim"]


@pytest.mark.parametrize("answer", [TAKEN, ObjectNotFoundError("gone")])
async def test_a_loser_does_nothing_more(answer: Exception) -> None:
    session = ScriptedSession(merge_patch=[answer])
    tried = claimer(session)
    assert await tried.claim(candidate()) is None
    assert tried.counts.conflicts == 1
    assert len(session.calls) == 1


async def test_a_claim_whose_answer_is_lost_is_adopted() -> None:
    store = Store()
    session = ScriptedSession(merge_patch=[store.take_and_lose_the_answer, TAKEN], get=[store.read])
    held = await claim(session)
    assert held
    first, second = session.made("merge_patch")
    assert first.body == second.body
    assert held.claim == store.stored["status"]["claim"]


async def test_an_adopted_claim_counts_from_when_it_was_first_sent() -> None:
    store, before = Store(), boottime()
    session = ScriptedSession(merge_patch=[store.take_and_lose_the_answer, TAKEN], get=[store.read])
    held = await claim(session)
    assert held
    assert before <= held.sent_at
    assert held.sent_at == held.started_at


async def test_a_claim_that_was_throttled_counts_from_when_it_was_sent_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, faults = memory_server(), ScriptedFaults()
    faults.add(Fault(status=429, retry_after=3), method="PATCH", path="/status", times=2)
    pod = Space("work", memory_admin(server)).create().worker("worker-0")
    made = server.create(collection_path("work", JOBS), raw_job("throttled"))
    access = MemoryAccess(MemoryConnections(server, faults), pod.client.token, "work")
    holder = LeaseHolder(pod.pod, pod.pod_uid, "worker-0/1")
    now = [100.0]

    async def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr("asyncjob.kube.transport.asyncio.sleep", sleep)
    monkeypatch.setattr("asyncjob.kube.transport.retry_after_delay", lambda seconds: seconds)
    monkeypatch.setattr("asyncjob_worker.claiming.claimer.boottime", lambda: now[0])
    async with KubeSession(access, field_manager="tests") as session:
        enforcement = EnforcementCheck(session, required=False)
        late = HeartbeatLag(0.25, lambda: 0.0)
        queue = QueueState(lambda: None, on_unlimited=ignore)
        tried = Claimer(session, an_app(), queue, holder, enforcement, lag=late)
        version = made["metadata"]["resourceVersion"]
        held = await tried.claim(replace(SHORT, name="throttled", resource_version=version))
    assert held
    assert (held.sent_at, held.lease_expires_at) == (106.0, 111.0)


async def test_a_claim_that_never_arrived_is_sent_again_and_cannot_take_effect_twice() -> None:
    session = ScriptedSession(merge_patch=[LOST, ours])
    held = await claim(session)
    assert held
    first, second = session.made("merge_patch")
    assert first.body == second.body


async def test_a_conflict_after_a_lost_answer_may_be_anothers() -> None:
    session = ScriptedSession(merge_patch=[LOST, TAKEN], get=[job(claim="theirs")])
    tried = claimer(session)
    assert await tried.claim(candidate()) is None
    assert tried.counts.conflicts == 1


async def test_our_claim_that_was_recovered_meanwhile_is_not_adopted() -> None:
    def recovered(_: Call) -> dict[str, Any]:
        token = session.made("merge_patch")[0].body["status"]["claim"]
        return job(claim=token, phase="Retrying")

    session = ScriptedSession(merge_patch=[LOST, TAKEN], get=[recovered])
    assert await claim(session) is None


async def test_the_look_after_a_conflict_is_repeated_until_it_is_answered() -> None:
    store = Store()
    session = ScriptedSession(
        merge_patch=[store.take_and_lose_the_answer, TAKEN], get=[LOST, LOST, store.read]
    )
    assert await claim(session)


NOT_NOW = [
    ThrottledError("slow down"),
    UnauthorizedError("401"),
    ForbiddenError("rbac"),
    InvalidError("a rule"),
]


@pytest.mark.parametrize("answer", NOT_NOW, ids=lambda error: type(error).__name__)
async def test_a_claim_in_doubt_is_looked_for_whatever_its_repetition_is_answered(
    answer: Exception,
) -> None:
    store = Store()
    session = ScriptedSession(
        merge_patch=[store.take_and_lose_the_answer, answer], get=[answer, store.read]
    )
    held = await claim(session)
    assert held
    assert held.claim == store.stored["status"]["claim"]


@pytest.mark.parametrize("answer", NOT_NOW[:3], ids=lambda error: type(error).__name__)
async def test_a_claim_in_doubt_that_has_not_taken_effect_ends_as_it_was_answered(
    answer: Exception,
) -> None:
    session = ScriptedSession(merge_patch=[LOST, answer], get=[job(claim="", phase="Queued")])
    with pytest.raises(type(answer)):
        await claim(session)


@pytest.mark.parametrize("answer", NOT_NOW[:3], ids=lambda error: type(error).__name__)
async def test_without_doubt_nobody_looks(answer: Exception) -> None:
    session = ScriptedSession(merge_patch=[answer])
    with pytest.raises(type(answer)):
        await claim(session)
    assert not session.made("get")


async def test_an_outage_longer_than_the_lease_ends_the_claim(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = iter(range(0, 1000, 2))
    monkeypatch.setattr("asyncjob_worker.claiming.claimer.boottime", lambda: float(next(times)))
    session = ScriptedSession(merge_patch=[LOST])
    with pytest.raises(UnknownOutcomeError):
        await claim(session, SHORT)


@pytest.mark.parametrize(
    "answer",
    [
        InvalidError("a rule"),
        TooLargeError("request is too large"),
        ForbiddenError("ValidatingAdmissionPolicy 'x' denied request"),
    ],
)
async def test_a_job_that_cannot_be_claimed_does_not_hold_up_the_others(answer: Exception) -> None:
    session = ScriptedSession(merge_patch=[answer])
    tried = claimer(session)
    assert await tried.claim(candidate()) is None
    assert tried.counts.refused == 1


async def test_missing_permission_is_an_error_of_all_claims() -> None:
    session = ScriptedSession(merge_patch=[ForbiddenError("cannot patch asyncjobs/status")])
    with pytest.raises(ForbiddenError):
        await claim(session)


async def test_the_policy_is_the_jobs_before_the_queues_before_the_handlers() -> None:
    session = ScriptedSession(merge_patch=[ours])
    queue = QueueState(lambda: None, on_unlimited=ignore)
    queue.replace(
        [{"spec": {"defaults": {"leaseDurationSeconds": 30, "executionTimeoutSeconds": 9}}}]
    )
    enforcement = EnforcementCheck(session.session, required=False)
    late = HeartbeatLag(0.25, lambda: 0.0)
    await Claimer(session.session, an_app(), queue, ME, enforcement, lag=late).claim(SHORT)
    effective = session.calls[0].body["status"]["effective"]
    assert (effective["leaseDurationSeconds"], effective["executionTimeoutSeconds"]) == (5, 9)


async def test_the_grace_of_a_cancel_is_the_jobs_own_before_the_queues() -> None:
    queue = QueueState(lambda: None, on_unlimited=ignore)
    queue.replace([{"spec": {"defaults": {"cancelGraceSeconds": 60}}}])
    session = ScriptedSession(merge_patch=[ours])
    enforcement = EnforcementCheck(session.session, required=False)
    late = HeartbeatLag(0.25, lambda: 0.0)
    held = await Claimer(session.session, an_app(), queue, ME, enforcement, lag=late).claim(SHORT)
    assert held
    assert held.cancel_grace == 60.0
    queue.replace([])
    assert queue.cancel_grace == 30
