"""One trace over gateway, attempts and child, as a collector sees it; and logs that name it."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider

from asyncjob.client import JobsClient
from support.driven.jobs import until
from support.loopback.collector import Collector, Seen
from support.processes.gateway import PLAIN, GatewayProcess
from support.processes.operator import OperatorProcess, Replicas
from support.processes.workers import WorkerNamespace

pytestmark = pytest.mark.integration

TRACE_ID, ABOVE = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE_ID}-{ABOVE}-01"
SECRET = "ssn-078-05-1120"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as running:
        yield running


@pytest.fixture
def gateway(gateway_access: Path, collector: Collector, tmp_path: Path) -> Iterator[GatewayProcess]:
    log = tmp_path / "gateway.log"
    log.touch()
    options = ("--open", "--log-format=json", "--log-level=DEBUG")
    traced = environment(collector)
    with GatewayProcess(gateway_access, log, *options, environment=traced) as running:
        yield running.until_ready()


def environment(collector: Collector) -> dict[str, str]:
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "ASYNCJOB_WORKER_LOG_FORMAT": "json",
    }


def test_gateway_attempts_and_child_are_one_trace_whoever_began_it(
    replicas: Replicas, ns: WorkerNamespace, gateway: GatewayProcess, collector: Collector
) -> None:
    operator = replicas.start("--log-format=json", "--log-level=DEBUG").until_leading()
    # A parent that parks on a busy machine has one more attempt than is counted here.
    options = ("--concurrency=4", "--park=never")
    ns.worker("w", *options, app="support.apps.traced:app", env=environment(collector))
    with gateway.client() as http:
        begun_elsewhere(http, ns, collector)
        begun_here(http, ns, collector)
        refused(http, collector)
    in_a_span_of_the_caller(gateway, ns)
    gateway.stop()
    assert not any(SECRET in str(span) for span in collector.spans), "no payload in a span"
    assert SECRET not in gateway.log.read_text(), "nor in a log"
    said_by_the_operator(operator, ns)
    lines = logged(gateway.log.read_text())
    submitted = [line for line in lines if line.get("job") == "trip"]
    assert {line["trace_id"] for line in submitted} == {TRACE_ID}
    assert "request" in {line["event"] for line in submitted}, "the access log names both"


def logged(text: str) -> list[dict[str, Any]]:
    """Return the lines, each an object, those of libraries too."""
    return [json.loads(line) for line in text.splitlines()]


def said_by_the_operator(operator: OperatorProcess, ns: WorkerNamespace) -> None:
    """Find job, attempt and trace in what it says of a job that it moves."""
    lines = [line for line in logged(operator.logs()) if line["event"] == "phase changed"]
    [moved] = [line for line in lines if line["job"] == f"{ns.namespace}/trip"]
    assert (moved["attempt"], moved["to"]) == (1, "Queued")
    assert moved["trace_id"] == TRACE_ID


def begun_elsewhere(http: httpx.Client, ns: WorkerNamespace, collector: Collector) -> None:
    """Continue the trace of a request that has one."""
    submit(http, "trip", name="trip", headers={"traceparent": TRACEPARENT})
    ns.until_phase("trip", "Succeeded")
    seen = whole(collector, TRACE_ID)
    [submitted] = seen["submit trip"]
    assert (submitted.service, submitted.parent) == ("asyncjob-gateway", ABOVE)
    assert submitted.attributes == {
        "messaging.system": "asyncjob",
        "messaging.operation.name": "submit",
        "messaging.operation.type": "send",
        "messaging.destination.name": "default",
        "messaging.message.id": "trip",
        "asyncjob.type": "trip",
        "asyncjob.queue": "default",
        "asyncjob.name": "trip",
    }
    first, second = seen["run trip"]
    assert {one.service for one in (first, second)} == {"asyncjob-worker"}
    assert [one.parent for one in (first, second, *seen["claim trip"])] == [submitted.span_id] * 4
    assert [one.attributes["asyncjob.attempt"] for one in (first, second)] == ["1", "2"]
    assert [one.attributes["messaging.operation.type"] for one in seen["claim trip"]] == [
        "receive",
        "receive",
    ]
    [packing], [leg] = seen["packing"], seen["run leg"]
    assert (packing.parent, leg.parent) == (second.span_id, packing.span_id)
    assert leg.attributes["messaging.operation.type"] == "process"


def begun_here(http: httpx.Client, ns: WorkerNamespace, collector: Collector) -> None:
    """Begin a trace for a request without one, by the public contract too, or with nonsense."""
    answer = http.post("/jobs", json={"jobType": "trip", "payload": SECRET})
    assert answer.status_code == 202
    name = answer.json()["jobId"]
    ns.until_phase(name, "Succeeded")
    trace_id = ns.get(name)["spec"]["traceparent"].split("-")[1]
    seen = whole(collector, trace_id)
    [submitted] = seen["submit trip"]
    assert submitted.parent == ""
    assert {run.parent for run in seen["run trip"]} == {submitted.span_id}
    submit(http, "leg", name="odd", headers={"traceparent": "00-nonsense"})
    odd = ns.get("odd")["spec"]["traceparent"].split("-")[1]
    assert odd not in {trace_id, TRACE_ID}


def refused(http: httpx.Client, collector: Collector) -> None:
    """Tell a refusal by its type; each job of a batch has a span of its own."""
    batch = {"jobs": [{"type": "leg", "name": "trip"}, {"type": "leg", "name": "other"}]}
    answer = http.post("/api/v1/jobs/batch", json=batch, headers={"traceparent": TRACEPARENT})
    assert (answer.json()["accepted"], answer.json()["refused"]) == (1, 1)
    spans = until(lambda: of(collector, TRACE_ID, "submit leg", 2), 10, "both of the batch")
    [bad] = [one for one in spans if one.failed]
    assert bad.attributes["error.type"] == "JobExistsError"
    assert {one.parent for one in spans} == {ABOVE}


def in_a_span_of_the_caller(gateway: GatewayProcess, ns: WorkerNamespace) -> None:
    """Carry the span that a client is called in, unless a submission names another."""
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("caller")
    with (
        JobsClient(gateway.url, verify=PLAIN) as jobs,
        tracer.start_as_current_span("calling") as span,
    ):
        jobs.submit("leg", SECRET, name="called")
        jobs.submit("leg", SECRET, name="named", traceparent=TRACEPARENT)
    mine = f"{span.get_span_context().trace_id:032x}"
    carried = [ns.get(name)["spec"]["traceparent"] for name in ("called", "named")]
    assert [text.split("-")[1] for text in carried] == [mine, TRACE_ID]


def submit(http: httpx.Client, type_: str, name: str, headers: dict[str, str]) -> None:
    body = {"type": type_, "name": name, "payload": SECRET}
    assert http.post("/api/v1/jobs", json=body, headers=headers).status_code == 202


WHOLE = Counter(
    {"submit trip": 1, "claim trip": 2, "run trip": 2, "packing": 1}
    | {"claim leg": 1, "run leg": 1, "walking": 1}
)


def whole(collector: Collector, trace_id: str) -> dict[str, list[Seen]]:
    """Return the spans of a trip by name, the oldest first, once all are there."""

    def names() -> Counter[str]:
        return Counter(span.name for span in collector.spans if span.trace_id == trace_id)

    until(lambda: names() == WHOLE, 10, f"all spans of {trace_id}: {names()}")
    return {name: of(collector, trace_id, name) or [] for name in WHOLE}


def of(collector: Collector, trace_id: str, name: str, least: int = 1) -> list[Seen] | None:
    found: list[Any] = [one for one in collector.named(name) if one.trace_id == trace_id]
    return found if len(found) >= least else None
