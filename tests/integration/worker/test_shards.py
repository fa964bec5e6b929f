"""Workers of a kind that share out what they watch: no job is left to nobody."""

import itertools
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from asyncjob.names import (
    API_VERSION,
    JOB_KIND,
    JOBS,
    SHARD_LABEL,
    collection_path,
    queue_path,
)
from asyncjob.shards import SHARDS, shard_label, shard_of
from asyncjob_dev.api import Object
from asyncjob_worker.claiming.sharding import MIN_PEERS
from support.driven.crews import Crews, crews_of
from support.processes.workers import WorkerNamespace, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

LOOK_SECONDS = 0.2
SIZE = 6
"""Workers of a kind: one more than from which on shards are shared out."""


@pytest.fixture
def crews(ns: WorkerNamespace) -> Iterator[Crews]:
    with crews_of(ns) as prepared:
        yield prepared


def create(
    ns: WorkerNamespace,
    name: str,
    labels: Mapping[str, str] | None = None,
    note: str = "",
    **spec: Any,
) -> Object:
    """Create a job with the label of its shard, unless others are given, and an annotation."""
    metadata = {
        "name": name,
        "labels": shard_label(name) if labels is None else labels,
        "annotations": {"note": note},
    }
    body = {
        "apiVersion": API_VERSION,
        "kind": JOB_KIND,
        "metadata": metadata,
        "spec": {"type": "nap", **spec},
    }
    return ns.api.create(collection_path(ns.namespace, JOBS), body)


def one_of_each_shard(prefix: str) -> Iterator[str]:
    """Yield a name of each shard."""
    names = (f"{prefix}-{number}" for number in itertools.count())
    for shard in range(SHARDS):
        yield next(name for name in names if shard_of(name) == shard)


def until_done(ns: WorkerNamespace, count: int, within: float) -> None:
    """Wait until so many jobs have succeeded."""

    def unfinished() -> list[str]:
        time.sleep(LOOK_SECONDS)
        jobs = ns.jobs()
        done = [one for one in jobs if one["status"]["phase"] == "Succeeded"]
        left = [one["metadata"]["name"] for one in jobs if one not in done]
        return left or ["not created"] * (count - len(done))

    until(lambda: not unfinished(), within, lambda: f"still there: {unfinished()}")


@pytest.mark.parametrize(
    "labels",
    [{}, {SHARD_LABEL: "none"}, {SHARD_LABEL: "64"}, {SHARD_LABEL: "07"}, {SHARD_LABEL: ""}],
    ids=str,
)
def test_a_job_in_no_shard_is_picked_up(
    ns: WorkerNamespace, crews: Crews, labels: Mapping[str, str]
) -> None:
    crews.start(SIZE)
    crews.until_assigned()
    for number in range(4):
        create(ns, f"job-{number}", labels)
    until_done(ns, 4, within=5.0)


def test_a_job_in_the_shard_of_another_name_is_picked_up(ns: WorkerNamespace, crews: Crews) -> None:
    crews.start(SIZE)
    crews.until_assigned()
    for shard in range(SHARDS):
        create(ns, f"job-{shard}", {SHARD_LABEL: str(shard)})
    until_done(ns, SHARDS, within=10.0)


def test_a_job_whose_owner_changes_the_label_while_it_waits_is_picked_up(
    ns: WorkerNamespace, crews: Crews
) -> None:
    crews.start(SIZE)
    crews.until_assigned()
    ns.queue("default", paused=True)
    changes = ["0", "63", "none", None]
    for number, label in enumerate(changes):
        create(ns, f"job-{number}")
        ns.patch(f"job-{number}", {"metadata": {"labels": {SHARD_LABEL: label}}})
    ns.api.merge(
        queue_path(ns.namespace, "default"),
        {"spec": {"paused": False}},
    )
    until_done(ns, len(changes), within=10.0)


def test_workers_of_two_kinds_each_have_their_jobs_in_every_shard(
    ns: WorkerNamespace, crews: Crews
) -> None:
    for type_ in ("nap", "other"):
        crews.start(SIZE, (type_,))
    crews.until_assigned(kinds=2)
    for type_ in ("nap", "other"):
        for name in one_of_each_shard(type_):
            create(ns, name, type=type_)
    until_done(ns, 2 * SHARDS, within=15.0)
    # On a busy machine deputies claim as well; the benchmark holds conflicts to 3 %. Workers that
    # did not share the jobs out would lose most of their claims.
    assert crews.total("conflicts") <= 0.25 * crews.total("won")


@pytest.mark.parametrize("note", ["", "x" * 2**16], ids=["small", "large"])
def test_the_jobs_of_frozen_workers_are_picked_up_while_their_leases_live(
    ns: WorkerNamespace, crews: Crews, note: str
) -> None:
    """Half of them, so that in some shards owner and deputy are frozen and only looks are left.

    A list of a few jobs with such a note is too large for a look, as one of many would be.
    """
    crews.start(SIZE, worker_lease_interval=15.0)
    frozen = crews.start(SIZE, worker_lease_interval=15.0)
    crews.until_assigned()
    frozen.freeze()
    for name in one_of_each_shard("job"):
        create(ns, name, note=note)
    until_done(ns, SHARDS, within=20.0)
    crews.kill(frozen)


def test_jobs_with_a_priority_overtake_the_others_anywhere(
    ns: WorkerNamespace, crews: Crews
) -> None:
    crews.start(SIZE)
    crews.until_assigned()
    ns.queue("default", paused=True)
    for name in one_of_each_shard("plain"):
        create(ns, name, payload=0.2)
    for number in range(SIZE):
        create(ns, f"urgent-{number}", priority=10)
    ns.api.merge(
        queue_path(ns.namespace, "default"),
        {"spec": {"paused": False}},
    )
    until_done(ns, SHARDS + SIZE, within=30.0)
    jobs = sorted(ns.jobs(), key=lambda one: str(one["status"]["startTime"]))
    first = [one["metadata"]["name"] for one in jobs[: 2 * SIZE]]
    assert {f"urgent-{number}" for number in range(SIZE)} <= set(first)


@pytest.mark.soak
@pytest.mark.parametrize("labels", [{SHARD_LABEL: "7"}, {}], ids=["one shard", "no shard"])
def test_many_jobs_in_one_place_are_shared_by_all_workers(
    ns: WorkerNamespace, crews: Crews, labels: Mapping[str, str]
) -> None:
    """A few hundred stand for thousands, whose creation alone would take a minute."""
    alone = [crews.start(1) for _ in range(SIZE)]
    crews.until_assigned()
    ns.queue("default", paused=True)
    for number in range(200):
        create(ns, f"job-{number}", labels, payload=0.4)
    ns.api.merge(queue_path(ns.namespace, "default"), {"spec": {"paused": False}})
    until_done(ns, 200, within=60.0)
    done = sorted(crew.counts()["finished"] for crew in alone)
    assert done[0] >= 5, done
    # Six workers take turns at the front of one shard, and lose there what owners would not.
    assert crews.total("conflicts") <= 0.25 * crews.total("won")


@pytest.mark.parametrize(("earlier", "today"), [(2, SIZE), (SIZE, SIZE), (SIZE, 2)])
def test_workers_of_an_earlier_release_share_the_jobs_with_those_of_today(
    ns: WorkerNamespace, crews: Crews, earlier: int, today: int
) -> None:
    """Before shards, workers registered without them and watched all jobs (tests/releases)."""
    before = crews.start(earlier, earlier=True)
    after = crews.start(today)
    if today >= MIN_PEERS:
        crews.until_assigned()
    for name in one_of_each_shard("job"):
        create(ns, name, payload=0.1)
    for number in range(10):
        create(ns, f"unlabelled-{number}", {}, payload=0.1)
    until_done(ns, SHARDS + 10, within=30.0)
    assert before.counts()["finished"]
    assert after.counts()["finished"]
    assert before.counts()["own"] == 0
