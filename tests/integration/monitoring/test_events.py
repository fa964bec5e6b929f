"""Events on a real API server: what a person must see, once, however many jobs it is about."""

from collections import Counter

import pytest

from asyncjob_dev.api import Object
from asyncjob_operator.controllers.events import EVENT_BURST
from support.jobs import until
from support.replicas import Replicas
from support.workers import Field

pytestmark = pytest.mark.integration

HELD = 25
DOOMED = 40


def events(field: Field, reason: str = "") -> list[Object]:
    """Return the Events of the namespace about jobs, queues and itself, those for a reason only."""
    found: list[Object] = field.api.get(f"/api/v1/namespaces/{field.namespace}/events")["items"]
    ours = [one for one in found if one["reportingComponent"] == "asyncjob-operator"]
    return [one for one in ours if reason in {"", one["reason"]}]


@pytest.mark.soak
def test_many_jobs_make_few_events(replicas: Replicas, field: Field) -> None:
    operator = replicas.start(module="support.hasty_operator").until_leading()
    worker = field.worker("w", f"--concurrency={HELD}", app="support.monitored_app:app")
    for number in range(HELD):
        field.create(f"held-{number}", "held", leaseDurationSeconds=10)
    until(lambda: phases(field)["Running"] == HELD, 20, f"all running: {phases(field)}")

    without_workers(field)
    worker.kill()
    storm(field)
    field.worker("again", "--concurrency=8", app="support.monitored_app:app")
    field.open("done")
    until(lambda: phases(field)["Succeeded"] == HELD, 30, f"all done: {phases(field)}")
    told = Counter(one["reason"] for one in events(field))
    assert told == {"NoWorkers": 1, "RecoveryStorm": 1}, "jobs that succeed in the end have none"

    left_out(field)
    assert operator.metric("asyncjob_operator_events_posted_total", outcome="error") == 0


def without_workers(field: Field) -> None:
    """Tell of a queue that nobody serves once, whether or not there is an AsyncQueue."""
    for number in range(5):
        field.create(f"lost-{number}", "fine", queue="nobody")
    [told] = until(lambda: events(field, "NoWorkers"), 10, "the Event")
    about = {key: told["involvedObject"][key] for key in ("kind", "name", "namespace")}
    assert about == {"kind": "AsyncQueue", "name": "nobody", "namespace": field.namespace}
    assert told["type"] == "Warning"
    assert "no worker serves the queue" in told["message"]


def storm(field: Field) -> None:
    """Tell of a node's worth of jobs taken from dead workers once, by the namespace."""
    [told] = until(lambda: events(field, "RecoveryStorm"), 20, "the Event")
    assert (told["involvedObject"]["kind"], told["type"]) == ("Namespace", "Warning")
    assert "20 jobs or more" in told["message"]


def left_out(field: Field) -> None:
    """Tell of the first of a flood one by one, of the others in one Event with their number."""
    for number in range(DOOMED):
        field.create(f"doomed-{number}", "doomed")
    [told] = until(lambda: events(field, "EventsLeftOut"), 30, "the Event")
    until(lambda: phases(field)["DeadLetter"] == DOOMED, 10, "all given up")
    until(lambda: counted(field) == DOOMED, 20, f"each told of or counted: {counted(field)}")
    assert told["involvedObject"]["kind"] == "Namespace"
    assert "status.phase=DeadLetter" in told["message"], "and says where they all are"
    one_by_one = [one for one in events(field) if one["involvedObject"]["kind"] == "AsyncJob"]
    assert len(one_by_one) < EVENT_BURST + 5
    assert {one["reason"] for one in one_by_one} == {"NotRetryable"}


def counted(field: Field) -> int:
    """Return how many jobs were told of, one by one or by their number."""
    summed = sum(int(one["message"].split()[0]) for one in events(field, "EventsLeftOut"))
    return summed + len(events(field, "NotRetryable"))


def phases(field: Field) -> Counter[str]:
    return Counter(job["status"]["phase"] for job in field.jobs())
