"""What a seed is like: every trait comes, and gentle seeds spare what they have to."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pytest

from asyncjob.names import JOBS as JOBS_PLURAL
from asyncjob.names import collection_path
from asyncjob_operator.kube.paths import leases_path
from asyncjob_simulation.apiserver import Call
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.dice import Dice
from asyncjob_simulation.request_kinds import RequestKind, kind_of
from asyncjob_simulation.swarm import Gentleness, Swarm, swarm_of

SWARMS = [swarm_of(Dice(seed)) for seed in range(400)]
MEASURED = {"rates"}
"""Traits that are numbers of any size."""


def values(name: str) -> set[Any]:
    return {getattr(swarm, name) for swarm in SWARMS}


@pytest.mark.parametrize("name", [one.name for one in fields(Swarm) if one.name not in MEASURED])
def test_no_trait_is_the_same_in_all_seeds(name: str) -> None:
    assert len(values(name)) > 1


def test_each_kind_of_request_fails_more_often_in_some_seeds_and_never_in_others() -> None:
    for kind in RequestKind:
        factors = {swarm.rates.factors.get(kind, 1.0) for swarm in SWARMS}
        assert min(factors) == 0.0
        assert max(factors) > 1.0


def test_requests_of_each_kind_are_slow_in_some_rough_seeds_only() -> None:
    slow = {swarm.gentleness: set[RequestKind]() for swarm in SWARMS}
    for swarm in SWARMS:
        slow[swarm.gentleness] |= set(swarm.rates.slow_kinds)
    assert slow.pop(Gentleness.ROUGH) == set(RequestKind)
    assert not any(slow.values())
    assert any(not swarm.rates.slow_kinds for swarm in SWARMS if not swarm.is_gentle)


def test_gentle_seeds_have_no_fault_that_may_cost_an_attempt() -> None:
    spaced = [one for one in SWARMS if one.gentleness is Gentleness.SPACED]
    throttled = [one for one in SWARMS if one.gentleness is Gentleness.THROTTLED]
    assert spaced
    assert throttled
    for swarm in spaced:
        rates = swarm.rates
        assert not rates.slow
        assert not rates.watch_dropped
        assert rates.spacing > 0
        if rates.silent or rates.refused:
            assert min(swarm.leases) == 30
    for swarm in throttled:
        assert swarm.rates.factors[RequestKind.HEARTBEAT] == 0.0
        assert not swarm.rates.lost_after
    assert all(one.rare_jobs == 0.0 for one in (*spaced, *throttled))


JOBS = collection_path(NAMESPACE, JOBS_PLURAL)
LEASES = leases_path(NAMESPACE)
CASES: Mapping[RequestKind, tuple[str, str, str, bytes]] = {
    RequestKind.CLAIM: ("worker-0", "PATCH", f"{JOBS}/a/status", b'{"status":{"claim":"x"}}'),
    RequestKind.HEARTBEAT: ("worker-0", "PATCH", f"{JOBS}/a/status", b'[{"path":"/status/claim"}]'),
    RequestKind.OUTCOME: ("worker-0", "PATCH", f"{JOBS}/a/status", b'[{"path":"/status/phase"}]'),
    RequestKind.DECISION: ("operator-0", "PATCH", f"{JOBS}/a/status", b"{}"),
    RequestKind.LEASE: ("worker-0", "PATCH", f"{LEASES}/a", b"{}"),
    RequestKind.CREATION: ("operator-0", "POST", JOBS, b"{}"),
    RequestKind.READ: ("worker-0", "GET", f"{JOBS}/a", b""),
    RequestKind.OTHER: ("operator-0", "DELETE", f"{JOBS}/a", b""),
}


@pytest.mark.parametrize("kind", CASES)
def test_what_a_request_is_for(kind: RequestKind) -> None:
    actor, method, path, body = CASES[kind]
    call = Call(method, path, is_watch=False, user_agent="tests", body=body)
    assert kind_of(call, actor) is kind


def test_a_watch_is_no_read() -> None:
    call = Call("GET", JOBS, is_watch=True, user_agent="tests", body=b"")
    assert kind_of(call, "worker-0") is RequestKind.WATCH
