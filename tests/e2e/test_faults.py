"""Any one pod of any part dies while five hundred jobs are on their way: all of them end.

And none is taken from a worker that lives, by the record of every version of jobs and pods.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from asyncjob_dev.errors import KubectlError
from e2e.cluster import until
from e2e.faults import delete, evict, sigkill
from e2e.lease_periods import NEVER, LeasePeriod
from e2e.release import NAMESPACE, Object, Release, container_of
from e2e.wave import SIZE, Flow, wave

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300, func_only=True)]

RECOVERY_SECONDS = 2.0
"""From the API's showing that the container ended; where its worker was known for long enough."""
KNOWN_SECONDS = 12.0
FAILOVER_SECONDS = 15.0
UNDISTURBED = {"attempt": SIZE}


@pytest.fixture
def flowing(whole: Release) -> Iterator[Flow]:
    with wave(whole) as flow:
        yield flow


@pytest.fixture
def settled(whole: Release) -> Release:
    """Wait until the operators have known every worker for longer than a restart may take."""
    known_at = whole.whole_since + KNOWN_SECONDS
    until(lambda: time.monotonic() > known_at, KNOWN_SECONDS + 1, str)
    return whole


def busiest(flow: Flow) -> Object:
    """Return the worker pod that holds most jobs now."""
    held = [period.pod_uid for period in flow.lease_periods() if period.ended == NEVER]
    pods = flow.release.pods("worker-default")
    pod = max(pods, key=lambda pod: held.count(pod["metadata"]["uid"]))
    assert held.count(pod["metadata"]["uid"])
    return pod


def name_of(pod: Object) -> str:
    return str(pod["metadata"]["name"])


def charged(flow: Flow) -> dict[str, int]:
    """Wait for the end of all, and return what they were charged for."""
    flow.until_succeeded(SIZE)
    assert flow.complaints() == []
    return {name: count for name, count in flow.sums().items() if count}


def taken_from(flow: Flow, pod: Object) -> list[LeasePeriod]:
    """Return the attempts that ended otherwise than with a success in a pod's hands."""
    uid = pod["metadata"]["uid"]
    return [period for period in flow.lease_periods() if period.pod_uid == uid and period.reason]


def test_the_jobs_of_a_killed_worker_are_recovered_as_soon_as_its_end_is_known(
    settled: Release, record_property: Any
) -> None:
    # Recovery is what is measured here, and not the API server at its limit.
    with wave(settled, seconds=2) as flow:
        victim = busiest(flow)
        sigkill(settled.cluster, NAMESPACE, name_of(victim), "worker")
        sums = charged(flow)
    container = container_of(victim, "worker")["containerID"]
    died_at = flow.container_ends()[victim["metadata"]["uid"], container]
    taken = taken_from(flow, victim)
    assert taken
    assert {period.reason for period in taken} == {"WorkerCrashed"}
    delays = sorted(round(period.ended - died_at, 2) for period in taken)
    record_property("recovery_seconds", delays)
    print(f"jobs of the killed worker recovered after {delays} s")  # noqa: T201
    assert delays[-1] <= RECOVERY_SECONDS
    assert sums == {"attempt": SIZE + len(taken), "crashes": len(taken)}


def test_a_deleted_worker_finishes_or_gives_back_its_jobs(flowing: Flow) -> None:
    delete(flowing.release.cluster, NAMESPACE, name_of(busiest(flowing)))
    sums = charged(flowing)
    assert sums["attempt"] == SIZE + sums.get("releases", 0)
    assert not {"crashes", "retries"} & set(sums)


def test_an_evicted_worker_does_so_too_and_the_budget_spares_the_next(flowing: Flow) -> None:
    cluster, victim = flowing.release.cluster, name_of(busiest(flowing))
    others = [pod for pod in flowing.release.pods("worker-default") if name_of(pod) != victim]
    evict(cluster, NAMESPACE, victim)
    with pytest.raises(KubectlError, match="disruption budget"):
        evict(cluster, NAMESPACE, name_of(others[0]))
    sums = charged(flowing)
    assert sums["attempt"] == SIZE + sums.get("releases", 0)
    assert not {"crashes", "retries"} & set(sums)


def test_another_operator_leads_when_the_leader_is_killed_and_jobs_flow_on(
    flowing: Flow, record_property: Any
) -> None:
    release, leader = flowing.release, flowing.release.leader()
    sigkill(release.cluster, NAMESPACE, release.leading(), "operator")
    killed_at = time.monotonic()
    until(lambda: release.leader() not in {leader, ""}, FAILOVER_SECONDS, release.leader)
    print(f"another leads after {time.monotonic() - killed_at:.1f} s")  # noqa: T201
    assert charged(flowing) == UNDISTURBED


def test_nothing_is_noticed_of_the_end_of_a_standby(flowing: Flow) -> None:
    release, leader = flowing.release, flowing.release.leader()
    (standby,) = {name_of(pod) for pod in release.pods("operator")} - {release.leading()}
    delete(release.cluster, NAMESPACE, standby)
    assert charged(flowing) == UNDISTURBED
    assert release.leader() == leader


def test_nothing_is_noticed_of_the_end_of_a_gateway(flowing: Flow) -> None:
    release = flowing.release
    sigkill(release.cluster, NAMESPACE, name_of(release.pods("gateway")[0]), "gateway")
    assert charged(flowing) == UNDISTURBED
