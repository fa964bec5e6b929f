"""The worker's own Lease, from the first registration to the last."""

import asyncio
from typing import Any

import pytest

from asyncjob.errors import (
    AlreadyExistsError,
    ConflictError,
    ForbiddenError,
    ObjectNotFoundError,
    UnauthorizedError,
    UnknownOutcomeError,
)
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.claim import LeaseHolder
from asyncjob_simulation.apiserver import Fault, MemoryAccess, MemoryConnections, ScriptedFaults
from asyncjob_worker.errors import CannotStartError
from asyncjob_worker.leases.registration import WorkerLease, WorkerRegistration, leases_path
from support.cluster.identities import Space
from support.in_memory.memory import memory_admin, memory_server
from support.parts.worker_parts import ME, Pauses, ScriptedSession

OK: dict[str, Any] = {"metadata": {"resourceVersion": "7"}}
LISTED: dict[str, Any] = {"items": [{**OK, "spec": {"holderIdentity": ME.worker}}]}
THERE = AlreadyExistsError("there")
AWAY = UnknownOutcomeError("connection refused")
ABSENT = ObjectNotFoundError("no lease")


def registration(session: ScriptedSession, pauses: Pauses | None = None) -> WorkerRegistration:
    lease_content = WorkerLease(ME, "default", 2, ["echo"], 15.0)
    return WorkerRegistration(session.session, lease_content, pauses or Pauses())


async def test_the_first_registration_creates_the_lease_and_shows_that_it_can_be_renewed() -> None:
    session = ScriptedSession(create=[OK], merge_patch=[OK])
    await registration(session).register()
    assert [call.verb for call in session.calls] == ["create", "merge_patch"]
    (call,) = session.made("create")
    assert call.path.endswith("/leases")
    assert call.body["spec"]["holderIdentity"] == ME.worker


async def test_a_restarted_worker_takes_its_pods_lease_over() -> None:
    session = ScriptedSession(create=[THERE], get=[LISTED], merge_patch=[OK])
    await registration(session).register()
    (call,) = session.made("merge_patch")
    assert call.body["metadata"]["resourceVersion"] == "7"


async def test_each_renewal_is_a_write_on_the_version_of_the_one_before() -> None:
    session = ScriptedSession(
        create=[OK], merge_patch=[{"metadata": {"resourceVersion": version}} for version in "89"]
    )
    ours = registration(session)
    await ours.register()
    await ours.mark_draining()
    await ours.mark_draining()
    versions = [call.body["metadata"]["resourceVersion"] for call in session.made("merge_patch")]
    assert versions == ["7", "8", "9"]


async def test_a_renewal_whose_answer_was_lost_keeps_no_later_one_up() -> None:
    session = ScriptedSession(create=[OK, THERE], merge_patch=[OK, AWAY, OK], get=[LISTED])
    ours = registration(session)
    await ours.register()
    await ours.mark_draining()
    await ours.mark_draining()
    assert len(session.made("merge_patch")) == 3


async def test_a_renewal_and_the_mark_of_a_drain_do_not_get_in_each_others_way() -> None:
    session = ScriptedSession(create=[OK], merge_patch=[OK])
    ours = registration(session)
    await ours.register()
    await asyncio.gather(ours.register(), ours.mark_draining())
    assert [call.verb for call in session.calls] == ["create", *["merge_patch"] * 3]


async def test_a_lease_that_was_removed_is_created_again() -> None:
    session = ScriptedSession(create=[OK], merge_patch=[OK, ABSENT, OK])
    ours = registration(session)
    await ours.register()
    await ours.register()
    assert len(session.made("create")) == 2


async def test_an_api_server_that_is_away_is_waited_for() -> None:
    session, pauses = ScriptedSession(create=[*[AWAY] * 10, OK], merge_patch=[OK]), Pauses()
    await registration(session, pauses).register()
    assert len(pauses.seconds) == 10
    assert max(pauses.seconds) <= 60


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"create": [ForbiddenError("rbac")]}, "check the worker's RBAC"),
        ({"create": [OK], "merge_patch": [ForbiddenError("rbac")]}, "check the worker's RBAC"),
        ({"create": [UnauthorizedError("401")]}, "token"),
        ({"create": [ABSENT]}, "namespace 'ns' does not exist"),
    ],
)
async def test_where_waiting_is_of_no_use_it_says_what_to_do(answers: Any, words: str) -> None:
    with pytest.raises(CannotStartError, match=words):
        await registration(ScriptedSession(**answers)).register()


async def test_it_is_renewed_through_outages() -> None:
    class EnoughError(Exception):
        pass

    session, rounds = ScriptedSession(create=[AWAY, OK], merge_patch=[OK]), list[int]()

    def count() -> None:
        rounds.append(1)
        if len(rounds) > 3:
            raise EnoughError

    with pytest.raises(EnoughError):
        await registration(session).renew_periodically(count)
    assert len(session.calls) == 4


async def test_a_draining_worker_says_so_and_goes_on_saying_so() -> None:
    session = ScriptedSession(create=[OK], merge_patch=[OK])
    ours = registration(session)
    await ours.mark_draining()
    await ours.register()
    for call in session.calls:
        assert '"draining":true' in call.body["metadata"]["annotations"]["asyncjob.dev/worker"]


async def test_the_end_empties_the_lease() -> None:
    session = ScriptedSession(create=[OK], merge_patch=[OK])
    ours = registration(session)
    await ours.register()
    await ours.deregister()
    (_, call) = session.made("merge_patch")
    assert call.body == {"spec": {"holderIdentity": ""}, "metadata": {"resourceVersion": "7"}}


async def test_the_end_goes_on_after_a_write_that_was_still_on_its_way() -> None:
    changed = ConflictError("the mark of the drain came in between")
    session = ScriptedSession(create=[OK], merge_patch=[OK, AWAY, changed, OK], get=[LISTED])
    ours = registration(session)
    await ours.register()
    await ours.mark_draining()
    await ours.deregister()
    empty = {"spec": {"holderIdentity": ""}, "metadata": {"resourceVersion": "7"}}
    assert [call.body == empty for call in session.made("merge_patch")] == [
        False,
        False,
        True,
        True,
    ]


async def test_no_error_stops_the_end() -> None:
    session = ScriptedSession(get=[AWAY])
    await registration(session).deregister()
    assert len(session.calls) == 1


async def test_the_end_leaves_the_lease_of_a_newer_process_alone() -> None:
    newer = {"items": [{**OK, "spec": {"holderIdentity": "newer"}}]}
    session = ScriptedSession(create=[OK], merge_patch=[OK, ConflictError("changed")], get=[newer])
    ours = registration(session)
    await ours.register()
    await ours.deregister()
    assert len(session.made("merge_patch")) == 2


@pytest.mark.parametrize("write", ["register", "mark_draining", "deregister"])
async def test_a_write_that_comes_after_the_restart_does_not_bring_the_older_process_back(
    write: str,
) -> None:
    server, faults = memory_server(), ScriptedFaults()
    pod = Space("work", memory_admin(server)).create().worker("worker-0")
    access = MemoryAccess(MemoryConnections(server, faults), pod.client.token, "work")

    def process(session: KubeSession, name: str) -> WorkerRegistration:
        holder = LeaseHolder(pod.pod, pod.pod_uid, f"worker-0/{name}")
        return WorkerRegistration(session, WorkerLease(holder, "default", 2, ["echo"], 15.0))

    async with KubeSession(access, field_manager="tests") as session:
        older, newer = process(session, "older"), process(session, "newer")
        await older.register()
        faults.add(Fault(lost="late", before=0.05), method="PATCH")
        delayed = asyncio.ensure_future(getattr(older, write)())
        await asyncio.sleep(0.01)  # it is on its way, and the process is killed
        delayed.cancel()
        await newer.register()
        await asyncio.sleep(0.1)
        lease = server.get(f"{leases_path('work')}/asyncjob-worker-worker-0")
    assert lease["spec"]["holderIdentity"] == "worker-0/newer"


async def test_a_lease_whose_creation_is_on_its_way_at_the_stop_is_emptied() -> None:
    server, faults = memory_server(), ScriptedFaults()
    pod = Space("work", memory_admin(server)).create().worker("worker-0")
    access = MemoryAccess(MemoryConnections(server, faults), pod.client.token, "work")
    async with KubeSession(access, field_manager="tests") as session:
        holder = LeaseHolder(pod.pod, pod.pod_uid, "worker-0/only")
        ours = WorkerRegistration(session, WorkerLease(holder, "default", 2, ["echo"], 15.0))
        faults.add(Fault(before=0.1), method="POST")
        starting = asyncio.ensure_future(ours.register())
        await asyncio.sleep(0.01)  # it is on its way
        starting.cancel()
        await ours.deregister()
        await asyncio.sleep(0.2)
        lease = server.get(f"{leases_path('work')}/asyncjob-worker-worker-0")
    assert lease["spec"]["holderIdentity"] == ""
