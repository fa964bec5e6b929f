"""The judge of the end-to-end tests: whom it accuses, and whom not."""

from typing import Any

from e2e.lease_periods import NEVER, LeasePeriod, broken_rules, ends, lease_periods, stolen
from e2e.recording import Seen

POD = "pod-uid"


def version(at: float, phase: str, claim: str = "", **status: Any) -> Seen:
    """Return a version of the one job; one with a claim is held by the process `w<claim>`."""
    held = {"claim": claim, "lease": {"holderUID": POD, "worker": f"w{claim}"}} if claim else {}
    now = {"phase": phase, "attempt": int(claim or 0), **held, **status}
    return Seen(at, "MODIFIED", {"metadata": {"name": "job", "uid": "job-uid"}, "status": now})


def container(at: float, identity: str, state: str = "state", name: str = "worker") -> Seen:
    """Return a version of the pod whose container has ended."""
    ended = {"name": name, state: {"terminated": {"containerID": identity}}}
    status = {"containerStatuses": [ended]}
    return Seen(at, "MODIFIED", {"metadata": {"name": "pod", "uid": POD}, "status": status})


def taken(at: float, worker: str = "w1") -> LeasePeriod:
    return LeasePeriod("job", "1", POD, worker, began=1, ended=at, reason="WorkerCrashed")


def test_an_attempt_lasts_from_its_claim_to_the_version_without_its_lease() -> None:
    history = [
        version(0, "Queued"),
        version(1, "Running", "1"),
        version(2, "Running", "1", progress=50),
        version(3, "Retrying", reason="WorkerCrashed"),
        version(4, "Queued"),
        version(5, "Running", "2"),
    ]
    assert lease_periods(history) == [
        LeasePeriod("job", "1", POD, "w1", began=1, ended=3, reason="WorkerCrashed"),
        LeasePeriod("job", "2", POD, "w2", began=5, ended=NEVER),
    ]


def test_a_claim_right_after_another_ends_the_first_although_no_version_lies_between() -> None:
    found = lease_periods([version(1, "Running", "1"), version(2, "Running", "2")])
    assert [(period.worker, period.ended) for period in found] == [("w1", 2), ("w2", NEVER)]


def test_a_container_has_ended_since_it_was_first_seen_so_however_it_goes_on() -> None:
    pods = [container(3, "a"), container(4, "a", "lastState"), container(5, "b", name="proxy")]
    assert ends(pods) == {(POD, "a"): 3}


def test_a_job_taken_from_a_process_that_has_ended_is_not_stolen() -> None:
    assert stolen([taken(at=5)], {(POD, "a"): 4.9}) == []


def test_a_job_taken_before_or_without_its_process_ending_is_stolen() -> None:
    for over in ({}, {(POD, "a"): 6.0}, {("another", "a"): 4.0}):
        assert stolen([taken(at=5)], over) == ["job was taken from w1: WorkerCrashed"]


def test_the_end_of_an_earlier_process_of_the_pod_excuses_nothing() -> None:
    held = [taken(at=3), LeasePeriod("other", "2", POD, "w2", 4, 5, "LeaseExpired")]
    assert stolen(held, {(POD, "a"): 2.0}) == ["other was taken from w2: LeaseExpired"]
    assert stolen(held, {(POD, "a"): 2.0, (POD, "b"): 4.5}) == []


def test_who_gives_a_job_back_is_no_victim() -> None:
    assert stolen([LeasePeriod("job", "1", POD, "w1", 1, 5, "Released")], {}) == []


def test_a_lease_that_changes_hands_is_a_broken_rule() -> None:
    kept = {"holder": "pod", "acquireTime": "", "durationSeconds": 60, "renewals": 0}
    counters = dict.fromkeys(("retries", "crashes", "releases", "redrives"), 0)

    def running(at: float, worker: str) -> Seen:
        seen = version(at, "Running", "1", **counters)
        seen.object["spec"] = {}
        seen.object["status"]["lease"] = {"holderUID": POD, "worker": worker, **kept}
        return seen

    steps = [running(1, "w1"), running(2, "w1"), running(3, "w2")]
    assert broken_rules(steps) == [
        "job: lease.holder: the lease went from w1 to w2 without a claim"
    ]
