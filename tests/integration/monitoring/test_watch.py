"""How far from its thresholds the alert on a stale watch is while all is well."""

from collections import Counter

import pytest

from support.driven.jobs import until
from support.processes.operator import Replicas
from support.processes.workers import WorkerNamespace

pytestmark = pytest.mark.integration

JOBS = 120
ALLOWED = 50 / 3
"""Repairs of one comparison that the alert puts up with, at one each five minutes."""

OPERATOR = "asyncjob_operator_"


def test_a_healthy_watch_is_far_from_being_stale(replicas: Replicas, ns: WorkerNamespace) -> None:
    operator = replicas.start("--resync-interval=0.5", "--log-level=DEBUG").until_leading()
    ns.worker("w", "--concurrency=8", app="support.apps.monitored:app")
    lags = []
    for number in range(JOBS):
        ns.create(f"job-{number}", "fine")
        if number % 10 == 0:
            lags.append(operator.totals()[OPERATOR + "watch_lag_seconds"])
    until(lambda: succeeded(ns) == JOBS, 20, "all of them")
    end = operator.totals()
    assert end[OPERATOR + "watch_events_total"] >= 3 * JOBS
    compared = operator.logs().count("resynced")
    assert compared >= 5
    assert end[OPERATOR + "resync_repairs_total"] / compared < ALLOWED / 2
    assert end[OPERATOR + "watch_restarts_total"] == 0
    assert max(lags) < 10


def succeeded(ns: WorkerNamespace) -> int:
    return Counter(job["status"]["phase"] for job in ns.jobs())["Succeeded"]
