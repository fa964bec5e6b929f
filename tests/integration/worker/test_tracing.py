"""One trace over submit, claim, run, retry and child, as a collector sees it."""

import json
import os
from functools import partial
from typing import Any

import pytest

from support.loopback.collector import Collector, Seen
from support.processes.workers import WorkerNamespace, until

pytestmark = pytest.mark.integration

TRACE_ID, SUBMIT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE_ID}-{SUBMIT}-01"


def environment(collector: Collector) -> dict[str, str]:
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "ASYNCJOB_WORKER_LOG_FORMAT": "json",
    }


def lines(text: str, event: str) -> list[dict[str, Any]]:
    """Return the log lines of that message."""
    parsed = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [line for line in parsed if line["event"] == event]


def one(spans: list[Seen]) -> Seen:
    [span] = spans
    return span


def test_retries_and_children_join_the_trace_of_whoever_submitted(ns: WorkerNamespace) -> None:
    assert not any(name.startswith("OTEL_") for name in os.environ)
    with Collector() as collector:
        options = ("--concurrency=2",)
        worker = ns.worker(
            "worker-0", *options, app="support.apps.traced:app", env=environment(collector)
        )
        ns.create("trip", "trip", "north", traceparent=TRACEPARENT)
        ns.create("alone", "leg", "south")
        ns.until_phase("trip", "Succeeded")
        ns.until_phase("alone", "Succeeded")
        until(lambda: len(collector.named("walking")) == 2, 10, lambda: str(collector.spans))
        until(lambda: len(collector.named("run leg")) == 2, 10, lambda: str(collector.spans))
        until(lambda: len(collector.named("run trip")) == 2, 10, lambda: str(collector.spans))
        log = ns.log(worker)

    mine = {span.name for span in collector.spans if span.trace_id == TRACE_ID}
    assert mine == {"claim trip", "run trip", "packing", "claim leg", "run leg", "walking"}
    assert {span.service for span in collector.spans} == {"asyncjob-worker"}

    first, second = collector.named("run trip")
    assert [span.parent for span in (first, second, *collector.named("claim trip"))] == [SUBMIT] * 4
    assert [span.attributes["asyncjob.attempt"] for span in (first, second)] == ["1", "2"]
    assert [span.attributes["asyncjob.phase"] for span in (first, second)] == [
        "Retrying",
        "Succeeded",
    ]
    assert (first.failed, second.failed) == (True, False)
    assert first.attributes["error.type"] == "ValueError"
    assert not any("stumbled" in str(span) for span in collector.spans), "no messages in spans"

    packing = one(collector.named("packing"))
    leg = one([span for span in collector.named("run leg") if span.trace_id == TRACE_ID])
    walking = one([span for span in collector.named("walking") if span.trace_id == TRACE_ID])
    assert (packing.parent, leg.parent, walking.parent) == (
        second.span_id,
        packing.span_id,
        leg.span_id,
    )
    assert all(0 <= span.seconds < 15 for span in collector.spans)

    # A job that nobody gave a trace has that of its UID.
    alone = one([span for span in collector.named("run leg") if span.trace_id != TRACE_ID])
    assert alone.trace_id == ns.get("alone")["metadata"]["uid"].replace("-", "")

    said = [(line["job"], line["attempt"], line["trace_id"]) for line in lines(log, "on the way")]
    assert said == [("trip", 1, TRACE_ID), ("trip", 2, TRACE_ID)]
    far = {(line["attempt"], line["trace_id"]) for line in lines(log, "far away")}
    assert far == {(1, TRACE_ID), (1, alone.trace_id)}


@pytest.mark.parametrize("type_", ["stay", "stay-isolated"])
@pytest.mark.parametrize("traceparent", [TRACEPARENT, None])
def test_a_job_that_parks_has_one_trace_with_a_span_for_each_step(
    ns: WorkerNamespace, type_: str, traceparent: str | None
) -> None:
    with Collector() as collector:
        ns.worker(
            "worker-0", "--park=always", app="support.apps.traced:app", env=environment(collector)
        )
        given = {} if traceparent is None else {"traceparent": traceparent}
        ns.create("rest", type_, 4, **given)
        status = ns.until_phase("rest", "Succeeded", within=40)
        assert (status.get("parks", 0), status["result"]) == (1, 1)
        for name, count in ((f"run {type_}", 2), ("at leave", 1)):
            until(partial(has_spans, collector, name, count), 10, lambda: str(collector.spans))

    uid = ns.get("rest")["metadata"]["uid"]
    trace_ids = {span.trace_id for span in collector.spans}
    assert trace_ids == {TRACE_ID if traceparent else uid.replace("-", "")}
    first, second = collector.named(f"run {type_}")
    claims = collector.named(f"claim {type_}")
    assert len({span.parent for span in (first, second, *claims)}) == 1
    assert [span.attributes["asyncjob.phase"] for span in (first, second)] == [
        "Scheduled",
        "Succeeded",
    ]
    assert first.attributes["asyncjob.reason"] == "Sleeping"
    assert not any(span.failed for span in collector.spans), "a park is no failure"

    # A step that an attempt before has taken makes no span.
    arrive, leave = collector.named(f"step {type_}")
    assert [span.attributes["asyncjob.step"] for span in (arrive, leave)] == ["arrive", "leave"]
    assert (arrive.parent, leave.parent) == (first.span_id, second.span_id)
    inside = [one(collector.named(f"at {key}")).parent for key in ("arrive", "leave")]
    assert inside == [arrive.span_id, leave.span_id]


def test_parks_for_children_and_for_a_signal_are_in_the_trace_of_the_job(
    ns: WorkerNamespace,
) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    user = ns.api.create(path, review)["status"]["userInfo"]["username"]
    with Collector() as collector:
        ns.worker(
            "worker-0", "--park=always", app="support.apps.traced:app", env=environment(collector)
        )
        ns.create("far", "expedition", 3, traceparent=TRACEPARENT)
        ns.until_status("far", lambda status: status.get("reason") == "WaitingForSignal", within=60)
        signal = {"payload": "home", "sentBy": user}
        ns.patch("far", {"spec": {"signals": {"return": signal}}})
        status = ns.until_phase("far", "Succeeded", within=40)
        assert (status.get("parks", 0), status["result"]) == (2, "home")
        until(partial(has_spans, collector, "run expedition", 3), 10, lambda: str(collector.spans))
    assert {span.trace_id for span in collector.spans} == {TRACE_ID}
    attempts = collector.named("run expedition")
    assert [
        (span.attributes["asyncjob.phase"], span.attributes.get("asyncjob.reason"), span.failed)
        for span in attempts
    ] == [
        ("Pending", "WaitingForChildren", False),
        ("Pending", "WaitingForSignal", False),
        ("Succeeded", None, False),
    ]
    assert {span.parent for span in attempts} == {SUBMIT}
    assert {span.parent for span in collector.named("run stay")} == {attempts[0].span_id}


def has_spans(collector: Collector, name: str, count: int) -> bool:
    """Return whether there are so many spans of a name."""
    return len(collector.named(name)) == count
