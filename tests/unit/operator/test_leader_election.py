"""The elector on a fake API server, with clocks in the test's hands."""

import asyncio
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from asyncjob.errors import ForbiddenError, UnknownOutcomeError
from asyncjob.kube import KubeSession
from asyncjob_operator.kube.leader_election import AlwaysLeader, LeaderElector
from support.in_memory.fake_session import FakeSession
from support.in_memory.memory import BEGINNING

NOTED = "asyncjob.dev/version-times"
NOW = int(BEGINNING)
LEASE = "/apis/coordination.k8s.io/v1/namespaces/home/leases/asyncjob-operator"


class Clock:
    """Stands still until told."""

    def __init__(self, at: float = 1000.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


def elector(server: FakeSession, identity: str, clock: Clock) -> LeaderElector:
    return LeaderElector(
        cast("KubeSession", server), "home", "asyncjob-operator", identity, clock=clock
    )


@pytest.fixture
def server() -> FakeSession:
    return FakeSession()


def noted(server: FakeSession) -> str:
    """Return what the Lease says of versions."""
    return str(server.objects[LEASE]["metadata"]["annotations"][NOTED])


async def test_the_first_to_come_leads_and_the_second_does_not(server: FakeSession) -> None:
    clock = Clock()
    first, second = elector(server, "a", clock), elector(server, "b", clock)
    await first.try_acquire_or_renew()
    await second.try_acquire_or_renew()
    assert (first.leads(), second.leads()) == (True, False)
    assert server.objects[LEASE]["spec"]["holderIdentity"] == "a"


async def test_a_candidate_takes_over_when_renewals_stop_whatever_its_own_clock_shows(
    server: FakeSession,
) -> None:
    ours, theirs = Clock(50_000.0), Clock(3.0)
    leader, standby = elector(server, "a", ours), elector(server, "b", theirs)
    await leader.try_acquire_or_renew()
    for _ in range(12):
        ours.at += 1
        theirs.at += 1
        await standby.try_acquire_or_renew()
        assert not (leader.leads() and standby.leads())
    assert standby.leads()
    assert server.objects[LEASE]["spec"]["leaseTransitions"] == 1


async def test_renewals_keep_the_lead(server: FakeSession) -> None:
    clock = Clock()
    leader, standby = elector(server, "a", clock), elector(server, "b", clock)
    for _ in range(20):
        await leader.try_acquire_or_renew()
        await standby.try_acquire_or_renew()
        clock.at += 2
    assert leader.leads()
    assert not standby.leads()


async def test_a_leader_that_cannot_renew_stops_before_anyone_may_take_over(
    server: FakeSession,
) -> None:
    clock = Clock()
    leader = elector(server, "a", clock)
    await leader.try_acquire_or_renew()
    server.fail("PATCH", LEASE, UnknownOutcomeError("no answer"))
    clock.at += 9
    with pytest.raises(UnknownOutcomeError):
        await leader.try_acquire_or_renew()
    assert not leader.leads()
    server.failures.clear()
    await leader.try_acquire_or_renew()
    assert leader.leads()


async def test_what_the_leader_has_noted_of_versions_is_known_to_whoever_leads_next(
    server: FakeSession,
) -> None:
    clock = Clock()
    leader, standby = elector(server, "a", clock), elector(server, "b", clock)
    await leader.try_acquire_or_renew()
    await standby.try_acquire_or_renew()
    leader.version_times.sample("100", NOW)
    await leader.try_acquire_or_renew()
    assert noted(server) == f"100@{NOW}"
    await standby.try_acquire_or_renew()
    assert standby.version_times.text() == f"100@{NOW}"
    leader.version_times.sample("200", NOW + 60)
    await leader.release()
    await standby.try_acquire_or_renew()
    standby.version_times.sample("300", NOW + 120)
    await standby.try_acquire_or_renew()
    assert noted(server) == f"100@{NOW} 200@{NOW + 60} 300@{NOW + 120}"


async def test_a_store_restored_from_a_backup_brings_along_what_was_noted_then(
    server: FakeSession,
) -> None:
    leader = elector(server, "a", Clock())
    await leader.try_acquire_or_renew()
    leader.version_times.sample("100", NOW)
    await leader.try_acquire_or_renew()
    backup = server.objects[LEASE]
    leader.version_times.sample("900", NOW + 60)
    await leader.try_acquire_or_renew()
    server.put(LEASE, backup)
    await leader.try_acquire_or_renew()  # finds another version, and reads
    assert leader.leads()
    assert leader.version_times.text() == f"100@{NOW}"
    await leader.try_acquire_or_renew()
    assert noted(server) == f"100@{NOW}"


async def test_a_backup_from_before_there_was_a_lease_leaves_nothing_noted(
    server: FakeSession,
) -> None:
    leader = elector(server, "a", Clock())
    await leader.try_acquire_or_renew()
    leader.version_times.sample("900", NOW)
    await leader.try_acquire_or_renew()
    del server.objects[LEASE]
    for _ in range(2):  # finds that it is gone, and creates it
        await leader.try_acquire_or_renew()
    assert leader.leads()
    assert leader.version_times.text() == ""


async def test_what_was_noted_before_there_was_the_lease_is_of_another_cluster(
    server: FakeSession,
) -> None:
    leader, standby = elector(server, "a", Clock()), elector(server, "b", Clock())
    copied = f"100@{NOW - 60} 200@{NOW}"
    made = {"creationTimestamp": "2027-01-15T08:00:00Z", "annotations": {NOTED: copied}}
    server.put(LEASE, {"metadata": made, "spec": {}})
    await standby.restore_version_times()
    assert standby.version_times.text() == f"200@{NOW}"
    await leader.try_acquire_or_renew()
    assert noted(server) == f"200@{NOW}"


async def test_a_renewal_repeats_nothing_that_the_lease_says_already(server: FakeSession) -> None:
    leader = elector(server, "a", Clock())
    await leader.try_acquire_or_renew()
    leader.version_times.sample("100", NOW)
    await leader.try_acquire_or_renew()
    await leader.try_acquire_or_renew()
    _created, renewed, again = [body["metadata"] for _method, _path, body in server.writes]
    assert renewed["annotations"] == {NOTED: f"100@{NOW}"}
    assert "annotations" not in again


async def test_a_replica_that_starts_knows_what_was_noted_before_it_takes_part(
    server: FakeSession,
) -> None:
    first, second = elector(server, "a", Clock()), elector(server, "b", Clock())
    await second.restore_version_times()  # there is no Lease yet
    await first.try_acquire_or_renew()
    first.version_times.sample("100", NOW)
    await first.try_acquire_or_renew()
    await second.restore_version_times()
    assert second.version_times.text() == f"100@{NOW}"


async def test_a_lease_that_may_not_be_read_keeps_no_replica_from_starting(
    server: FakeSession,
) -> None:
    server.fail("GET", LEASE, ForbiddenError("not you"))
    await elector(server, "a", Clock()).restore_version_times()
    server.fail("GET", LEASE, UnknownOutcomeError("no answer"))
    with pytest.raises(UnknownOutcomeError):
        await elector(server, "a", Clock()).restore_version_times()


async def test_a_woken_leader_finds_that_it_was_replaced(server: FakeSession) -> None:
    ours, theirs = Clock(), Clock()
    leader, standby = elector(server, "a", ours), elector(server, "b", theirs)
    await leader.try_acquire_or_renew()
    await standby.try_acquire_or_renew()
    theirs.at += 10
    await standby.try_acquire_or_renew()
    ours.at += 60
    await leader.try_acquire_or_renew()
    assert (leader.leads(), standby.leads()) == (False, True)


async def test_a_released_lease_is_taken_at_the_next_turn(server: FakeSession) -> None:
    clock = Clock()
    leader, standby = elector(server, "a", clock), elector(server, "b", clock)
    await leader.try_acquire_or_renew()
    await standby.try_acquire_or_renew()
    await leader.release()
    await standby.try_acquire_or_renew()
    assert (leader.leads(), standby.leads()) == (False, True)


async def test_a_release_goes_through_although_a_renewal_was_cut_short(
    server: FakeSession,
) -> None:
    leader = elector(server, "a", Clock())
    await leader.try_acquire_or_renew()
    server.put(LEASE, server.objects[LEASE])
    await leader.release()
    assert server.objects[LEASE]["spec"]["holderIdentity"] == ""


async def test_who_does_not_lead_releases_nothing(server: FakeSession) -> None:
    clock = Clock()
    leader, standby = elector(server, "a", clock), elector(server, "b", clock)
    await leader.try_acquire_or_renew()
    await standby.try_acquire_or_renew()
    await standby.release()
    assert server.objects[LEASE]["spec"]["holderIdentity"] == "a"


async def test_a_deleted_lease_is_made_again(server: FakeSession) -> None:
    leader = elector(server, "a", Clock())
    await leader.try_acquire_or_renew()
    del server.objects[LEASE]
    await leader.try_acquire_or_renew()
    await leader.try_acquire_or_renew()
    assert server.objects[LEASE]["spec"]["holderIdentity"] == "a"


async def test_a_race_for_a_free_lease_has_one_winner(server: FakeSession) -> None:
    clock = Clock()
    first, second = elector(server, "a", clock), elector(server, "b", clock)
    competitors: list[Any] = [first]

    def overtake(_path: str) -> None:
        if competitors:
            competitors.pop()
            body = {"metadata": {"name": "asyncjob-operator"}, "spec": {"holderIdentity": "b"}}
            server.put(LEASE, body)

    server.before_write = overtake
    await first.try_acquire_or_renew()
    await second.try_acquire_or_renew()
    assert not first.leads()
    assert server.objects[LEASE]["spec"]["holderIdentity"] == "b"


async def test_without_an_election_one_always_leads() -> None:
    always = AlwaysLeader()
    await always.wait_until_elected()
    await always.release()
    assert always.leads()


class Reviewing(FakeSession):
    """Grants all but one verb on Leases."""

    async def create(self, path: str, body: Any, _params: Any = None) -> Any:
        if not path.endswith("selfsubjectaccessreviews"):
            return await super().create(path, body)
        verb = body["spec"]["resourceAttributes"]["verb"]
        return {"status": {"allowed": verb != "patch"}}


async def test_a_lost_permission_is_named_once_a_minute_with_what_to_grant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, server = Clock(), Reviewing()
    server.fail("GET", LEASE, ForbiddenError("leases are forbidden", status=403))
    ends_at = clock.at + 70

    async def sleep(seconds: float) -> None:
        clock.at += seconds
        if clock.at >= ends_at:
            raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep", sleep)
    with capture_logs() as logs, pytest.raises(asyncio.CancelledError):
        await elector(server, "a", clock).run(lambda: "")
    said = [(entry["event"], entry.get("error")) for entry in logs]
    permission = "no permission to patch leases.coordination.k8s.io in namespace home"
    advice = "needed for leader election; grant it to the operator's service account"
    code = "(asyncjob explain operator-not-allowed)"
    assert (
        said
        == [
            ("election attempt failed", "leases are forbidden"),
            (f"{permission}, {advice} {code}", None),
        ]
        * 2
    )


async def test_who_is_unfit_stays_out_of_the_election_but_counts_the_others_time(
    server: FakeSession,
) -> None:
    clock = Clock()
    leader, cold = elector(server, "a", clock), elector(server, "b", clock)
    await leader.try_acquire_or_renew()
    for _ in range(12):
        clock.at += 1
        await cold.try_acquire_or_renew("jobs are not listed yet")
        assert not cold.leads()
    await cold.try_acquire_or_renew()
    assert cold.leads()


async def test_a_cold_replica_leaves_a_free_lease_to_a_warm_one(server: FakeSession) -> None:
    clock = Clock()
    dead, cold, warm = (elector(server, name, clock) for name in "abc")
    await dead.try_acquire_or_renew()
    await warm.try_acquire_or_renew()
    await dead.release()
    await cold.try_acquire_or_renew("jobs are not listed yet")
    assert not cold.leads()
    await warm.try_acquire_or_renew()
    assert warm.leads()


async def test_a_leader_that_becomes_unfit_hands_over_and_may_come_back(
    server: FakeSession,
) -> None:
    clock = Clock()
    leader, standby = elector(server, "a", clock), elector(server, "b", clock)
    await leader.try_acquire_or_renew()
    await standby.try_acquire_or_renew()
    with capture_logs() as logs:
        for _ in range(3):
            await leader.try_acquire_or_renew("nothing of the watch of jobs for 901 s")
    assert [entry["event"] for entry in logs] == ["handing leadership over"]
    await standby.try_acquire_or_renew()
    assert (leader.leads(), standby.leads()) == (False, True)
    await standby.release()
    await leader.try_acquire_or_renew()
    assert leader.leads()
