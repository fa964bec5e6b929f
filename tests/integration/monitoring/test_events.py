"""Events on a real API server: what a person must see, once, however many jobs it is about."""

from collections import Counter

import pytest

from asyncjob_dev.api import Object
from asyncjob_operator.controllers.events import EVENT_BURST
from support.driven.jobs import until
from support.processes.operator import Replicas
from support.processes.workers import WorkerNamespace

pytestmark = pytest.mark.integration

HELD = 25
DOOMED = 40


def events(ns: WorkerNamespace, reason: str = "") -> list[Object]:
    """Return the Events of the namespace about jobs, queues and itself, those for a reason only."""
    found: list[Object] = ns.api.get(f"/api/v1/namespaces/{ns.namespace}/events")["items"]
    ours = [one for one in found if one["reportingComponent"] == "asyncjob-operator"]
    return [one for one in ours if reason in {"", one["reason"]}]


@pytest.mark.soak
def test_many_jobs_make_few_events(replicas: Replicas, ns: WorkerNamespace) -> None:
    operator = replicas.start(module="support.programs.hasty_operator").until_leading()
    worker = ns.worker("w", f"--concurrency={HELD}", app="support.apps.monitored:app")
    for number in range(HELD):
        ns.create(f"held-{number}", "held", leaseDurationSeconds=10)
    until(lambda: phases(ns)["Running"] == HELD, 20, f"all running: {phases(ns)}")

    without_workers(ns)
    worker.kill()
    storm(ns)
    ns.worker("again", "--concurrency=8", app="support.apps.monitored:app")
    ns.open("done")
    until(lambda: phases(ns)["Succeeded"] == HELD, 30, f"all done: {phases(ns)}")
    told = Counter(one["reason"] for one in events(ns))
    assert told == {"NoWorkers": 1, "RecoveryStorm": 1}, "jobs that succeed in the end have none"

    left_out(ns)
    assert operator.metric("asyncjob_operator_events_posted_total", outcome="error") == 0


def without_workers(ns: WorkerNamespace) -> None:
    """Tell of a queue that nobody serves once, whether or not there is an AsyncQueue."""
    for number in range(5):
        ns.create(f"lost-{number}", "fine", queue="nobody")
    [told] = until(lambda: events(ns, "NoWorkers"), 10, "the Event")
    about = {key: told["involvedObject"][key] for key in ("kind", "name", "namespace")}
    assert about == {"kind": "AsyncQueue", "name": "nobody", "namespace": ns.namespace}
    assert told["type"] == "Warning"
    assert "no worker serves the queue" in told["message"]


def storm(ns: WorkerNamespace) -> None:
    """Tell of a node's worth of jobs taken from dead workers once, by the namespace."""
    [told] = until(lambda: events(ns, "RecoveryStorm"), 20, "the Event")
    assert (told["involvedObject"]["kind"], told["type"]) == ("Namespace", "Warning")
    assert "20 jobs or more" in told["message"]


def left_out(ns: WorkerNamespace) -> None:
    """Tell of the first of a flood one by one, of the others in one Event with their number."""
    for number in range(DOOMED):
        ns.create(f"doomed-{number}", "doomed")
    [told] = until(lambda: events(ns, "EventsLeftOut"), 30, "the Event")
    until(lambda: phases(ns)["DeadLetter"] == DOOMED, 10, "all given up")
    until(lambda: counted(ns) == DOOMED, 20, f"each told of or counted: {counted(ns)}")
    assert told["involvedObject"]["kind"] == "Namespace"
    assert "status.phase=DeadLetter" in told["message"], "and says where they all are"
    one_by_one = [one for one in events(ns) if one["involvedObject"]["kind"] == "AsyncJob"]
    assert len(one_by_one) < EVENT_BURST + 5
    assert {one["reason"] for one in one_by_one} == {"NotRetryable"}


def counted(ns: WorkerNamespace) -> int:
    """Return how many jobs were told of, one by one or by their number."""
    summed = sum(int(one["message"].split()[0]) for one in events(ns, "EventsLeftOut"))
    return summed + len(events(ns, "NotRetryable"))


def phases(ns: WorkerNamespace) -> Counter[str]:
    return Counter(job["status"]["phase"] for job in ns.jobs())
