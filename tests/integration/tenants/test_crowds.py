"""A tenant is served beside many namespaces, large objects, duplicates and refused creations."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from asyncjob.names import CRON_JOBS, QUEUES, collection_path
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.identities import Space
from support.driven import crowd
from support.driven.jobs import Jobs, now, until
from support.objects import builders
from support.processes.operator import OperatorProcess
from support.processes.workers import WorkerNamespace
from support.tenants.honest import WITHIN, HonestTenant, broken_loops

pytestmark = [pytest.mark.integration, pytest.mark.alone, pytest.mark.timeout(420)]

NAMESPACES = 40
LARGE = 60
DUPLICATES = 2000
READY_WITHIN = 60.0
SETTLED_WITHIN = 120.0
"""Seconds for the operator to cancel all duplicates, at its own pace and beside everything else."""

RECORDS = [{"number": number, "name": f"record {number:05}"} for number in range(6_000)]
"""About 250 KiB of JSON, as handlers are given it."""

KEYS = {f"k{number:05}": number for number in range(17_000)}
"""As much, tracked key by key in managedFields: the costliest shape to store and to read.

A few only: the API server takes most of a second for each, and everybody waits for that.
"""


@pytest.fixture
def tenant(honest: WorkerNamespace, operator: OperatorProcess) -> Iterator[HonestTenant]:
    """Have the honest tenant submit all the while, and check at the end that it never waited."""
    with HonestTenant(honest).undisturbed(at_least=1) as busy:
        yield busy
    operator.until_ready(1.0)
    assert operator.leads()
    assert not broken_loops(operator)


@pytest.mark.usefixtures("tenant")
def test_jobs_queues_and_schedules_of_many_namespaces_are_all_seen_to(
    control_plane: ControlPlane,
) -> None:
    many = [Jobs(control_plane.api) for _ in range(NAMESPACES)]
    for jobs in many:
        jobs.queue("limited", maxConcurrency=1)
        jobs.create("scheduled", notBefore=now(2))
        jobs.create("limited", queue="limited")
        schedule = builders.cron_job("nightly")
        jobs.api.create(collection_path(jobs.namespace, CRON_JOBS), schedule)
    for jobs in many:
        until(partial(_is_seen_to, jobs), 30, f"all of {jobs.namespace}")


def _is_seen_to(jobs: Jobs) -> bool:
    """Return whether start time, limit, cron job and queue have all been acted on."""
    came, admitted = jobs.status("scheduled"), jobs.status("limited")
    schedule = jobs.api.get(f"{collection_path(jobs.namespace, CRON_JOBS)}/nightly")
    queue = jobs.api.get(f"{collection_path(jobs.namespace, QUEUES)}/limited")
    started = came["phase"] == "Queued" and came.get("admitted")
    return bool(started and admitted.get("admitted") and "status" in schedule and "status" in queue)


@pytest.mark.usefixtures("tenant")
def test_large_jobs_hold_nobody_up(control_plane: ControlPlane, operator: OperatorProcess) -> None:
    store_large_jobs(Jobs(control_plane.api), operator)


def test_an_operator_starts_beside_large_jobs(
    control_plane: ControlPlane, honest: WorkerNamespace, operator: OperatorProcess
) -> None:
    store_large_jobs(Jobs(control_plane.api), operator)
    operator.stop()
    with operator:
        operator.until_ready(READY_WITHIN).until_leading()
        assert HonestTenant(honest).once() <= WITHIN


def store_large_jobs(jobs: Jobs, operator: OperatorProcess) -> None:
    known = operator.metric("asyncjob_operator_known_jobs")
    for number in range(LARGE):
        payload = KEYS if number % 20 == 0 else RECORDS
        jobs.create(f"large-{number}", payload=payload, notBefore=now(3600))
    until(lambda: operator.metric("asyncjob_operator_known_jobs") >= known + LARGE, 30, "all jobs")


def test_of_two_thousand_duplicates_one_runs_and_nobody_else_waits(
    control_plane: ControlPlane, space: Space, tenant: HonestTenant, honest: WorkerNamespace
) -> None:
    names = crowd.fill(
        *(control_plane, honest.namespace, DUPLICATES),
        type="wait",
        payload="gate",
        queue="honest",
        deduplicationId="same",
        priority=0,
    )
    before = len(tenant.waits)

    def phases() -> dict[str, int]:
        counts: dict[str, int] = {}
        for job in honest.jobs():
            if job["metadata"]["name"] in known:
                phase = job["status"]["phase"]
                counts[phase] = counts.get(phase, 0) + 1
        return counts

    known = set(names)
    until(
        lambda: phases() == {"Running": 1, "Cancelled": DUPLICATES - 1},
        SETTLED_WITHIN,
        "the end of the duplicates",
        every=2.0,
    )
    cancelled = [one for one in honest.jobs() if one["status"]["phase"] == "Cancelled"]
    assert {one["status"]["reason"] for one in cancelled} == {"Duplicate"}
    assert len(tenant.waits) > before
    honest.open("gate")


@pytest.mark.usefixtures("tenant")
def test_runs_that_a_quota_refuses_come_once_it_allows_them(
    control_plane: ControlPlane, space: Space
) -> None:
    schedules = collection_path(space.name, CRON_JOBS)
    quota = space.path("resourcequotas")
    hard = {"count/asyncjobs.asyncjob.dev": "0"}
    space.admin.create(quota, {"metadata": {"name": "none"}, "spec": {"hard": hard}}).object()
    used: dict[str, Any] = {"status": {"hard": hard, "used": hard}}
    space.admin.merge(f"{quota}/none/status", used).object()
    space.admin.create(schedules, builders.cron_job("triggered")).object()
    space.admin.merge(f"{schedules}/triggered", {"spec": {"trigger": 1}}).object()
    jobs = Jobs(control_plane.api, space.name)
    told = until(lambda: jobs.events("triggered"), 30, "an Event")
    assert any("quota" in event["message"] for event in told), told
    assert jobs.api.get(collection_path(space.name, "asyncjobs"))["items"] == []
    space.admin.delete(f"{quota}/none").object()
    listed = collection_path(space.name, "asyncjobs")
    until(lambda: len(jobs.api.get(listed)["items"]) == 1, 90, "the run")
