"""Events about jobs, and that there are never floods of them."""

from typing import Any

from asyncjob.errors import ForbiddenError
from asyncjob_operator.controllers.events import EVENT_BURST
from asyncjob_operator.core.events import HOUR, event_body, job_event, namespace_event, queue_event
from support.objects.snapshots import job
from support.parts.event_recorder import EventRecorderHarness


async def test_a_burst_is_told_then_one_every_few_seconds() -> None:
    harness = EventRecorderHarness()
    for number in range(1000):
        harness.recorder.record(job_event(job(name=f"job-{number}"), "QueueTimeout", "late"))
    await harness.post()
    assert harness.posted == EVENT_BURST
    harness.now += 60
    for number in range(1000):
        harness.recorder.record(job_event(job(name=f"more-{number}"), "QueueTimeout", "late"))
    await harness.post()
    assert harness.posted == EVENT_BURST + 10


async def test_an_event_that_cannot_be_posted_is_let_go() -> None:
    harness = EventRecorderHarness()
    harness.session.fail("POST", "/api/v1/namespaces/ns/events", ForbiddenError(status=403))
    harness.recorder.record(job_event(job(), "QueueTimeout", "late"))
    await harness.post()
    assert harness.posted == 0
    assert harness.recorder._queue.empty()


async def test_a_namespaces_warning_is_told_once_an_hour_and_each_namespaces_own() -> None:
    harness = EventRecorderHarness()
    for _ in range(5):
        harness.recorder.record(namespace_event("ns", "StoreNearLimit", "full"))
        harness.recorder.record(namespace_event("other", "StoreNearLimit", "full"))
        harness.now += 700
    await harness.post()
    assert len(harness.session.requests) == 2
    harness.now += 101
    harness.recorder.record(namespace_event("ns", "StoreNearLimit", "full"))
    await harness.post()
    assert len(harness.session.requests) == 3


async def test_who_has_been_told_of_is_forgotten_now_and_then_and_not_at_each_event() -> None:
    harness = EventRecorderHarness()
    recorder = harness.recorder
    recorder.record(namespace_event("ns", "StoreNearLimit", "full"))
    first = recorder._suppressed_until
    for number in range(100):
        recorder.record(namespace_event(f"ns-{number}", "StoreNearLimit", "full"))
    assert recorder._suppressed_until is first
    await harness.post()
    harness.now += 2 * HOUR
    recorder.record(namespace_event("ns", "StoreNearLimit", "full"))
    assert len(recorder._suppressed_until) == 1


async def test_a_warning_that_was_dropped_is_not_taken_for_told() -> None:
    harness = EventRecorderHarness()
    for number in range(100):
        harness.recorder.record(job_event(job(name=f"job-{number}"), "QueueTimeout", "late"))
    harness.recorder.record(namespace_event("ns", "StoreNearLimit", "full"))
    await harness.post()
    harness.now += 60
    harness.recorder.record(namespace_event("ns", "StoreNearLimit", "full"))
    await harness.post()
    bodies: list[Any] = [body for _, _, body in harness.session.requests]
    assert [body["reason"] for body in bodies].count("StoreNearLimit") == 1


def test_a_namespaces_event_names_the_namespace() -> None:
    told = namespace_event("ns", "StoreNearLimit", "full")
    body: Any = event_body(told, "name", "me", "now")
    assert body["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "namespace": "ns",
        "name": "ns",
    }
    assert (body["type"], body["reason"]) == ("Warning", "StoreNearLimit")


def test_a_queues_event_names_the_queue_which_need_not_be_an_object() -> None:
    told = queue_event("ns", "mail", "NoWorkers", "none")
    body: Any = event_body(told, "name", "me", "now")
    assert body["involvedObject"] == {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncQueue",
        "namespace": "ns",
        "name": "mail",
    }


def test_an_event_names_its_job_and_its_message_is_bounded() -> None:
    event = job_event(job(), "QueueTimeout", "x" * 5000)
    body: Any = event_body(event, "name", "me", "now")
    assert body == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "name", "namespace": event.namespace},
        "involvedObject": {
            "apiVersion": "asyncjob.dev/v1alpha1",
            "kind": "AsyncJob",
            "namespace": event.namespace,
            "name": event.name,
            "uid": "uid-job",
        },
        "type": "Warning",
        "reason": "QueueTimeout",
        "message": "x" * 1024,
        "count": 1,
        "firstTimestamp": "now",
        "lastTimestamp": "now",
        "source": {"component": "asyncjob-operator"},
        "reportingComponent": "asyncjob-operator",
        "reportingInstance": "me",
    }
