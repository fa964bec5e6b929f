"""A submission joins the trace of whoever submits, and costs nothing where nobody traces."""

import subprocess
import sys

import pytest
from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.trace import SpanKind

from asyncjob.client.errors import DuplicateJobError
from asyncjob.client.tracing import trace_submission, with_current_trace
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.submission import Submission, Submitted
from asyncjob.tracing.context import trace_id_of
from asyncjob.tracing.spans import submission_span
from asyncjob_gateway.app import NO_FRAMEWORK_TELEMETRY, make_app

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE_ID}-b7ad6b7169203331-01"
OTHER = f"00-{'ab' * 16}-{'cd' * 8}-01"
JOB = Submission(type="report.csv", payload="secret", queue="reports")


class Program:
    """A program that traces: its provider keeps what has ended in memory."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.provider.get_tracer("program")

    @property
    def span(self) -> ReadableSpan:
        [span] = self._exporter.get_finished_spans()
        return span


@pytest.mark.parametrize(
    ("modules", "never"),
    [
        ("asyncjob.client, asyncjob.client.rest.client", "opentelemetry"),
        ("asyncjob_operator.cli", "opentelemetry"),
        ("asyncjob_gateway.cli", "opentelemetry.sdk opentelemetry.exporter"),
    ],
    ids=["client", "operator", "gateway, whose framework needs the API of OpenTelemetry"],
)
def test_who_does_not_trace_loads_nothing_of_opentelemetry(modules: str, never: str) -> None:
    program = (
        f"import sys, {modules}\n"
        "from asyncjob.client.tracing import with_current_trace, trace_submission\n"
        "from asyncjob.rest.submission import Submission\n"
        "from asyncjob.tracing.provider import set_up_tracing\n"
        "assert set_up_tracing({}, 'a', 'b') is None\n"
        "job = Submission(type='t')\n"
        "assert with_current_trace(job) is job\n"
        "with trace_submission(job) as sent: assert sent.submission is job\n"
        f"never = tuple({never!r}.split())\n"
        "sys.exit(any(name.startswith(never) for name in sys.modules))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_gateways_framework_makes_no_spans_of_its_own() -> None:
    traced = TelemetryConfig(tracer_provider=TracerProvider(shutdown_on_exit=False))
    assert not make_app()._native_telemetry.enabled()
    assert FastAPI(telemetry=traced)._native_telemetry.enabled(), "what it would do"
    assert not FastAPI(telemetry={**traced, **NO_FRAMEWORK_TELEMETRY})._native_telemetry.enabled()


@pytest.mark.parametrize(
    ("named", "given", "carried"),
    [
        (None, None, None),
        (None, TRACEPARENT, TRACEPARENT),
        (OTHER, TRACEPARENT, OTHER),
        ("garbage", None, "garbage"),
    ],
)
def test_without_a_provider_the_job_carries_what_it_was_given(
    named: str | None, given: str | None, carried: str | None
) -> None:
    with trace_submission(JOB.model_copy(update={"traceparent": named}), given) as sent:
        assert sent.submission.traceparent == carried
        sent.record(Submitted(id="job", created=True, phase=Phase.QUEUED))
    assert sent.submission.payload == JOB.payload


def test_the_callers_span_is_carried_unless_the_submission_names_another() -> None:
    named = JOB.model_copy(update={"traceparent": OTHER})
    with Program().tracer.start_as_current_span("calling") as span, trace_submission(JOB) as sent:
        mine = f"{span.get_span_context().trace_id:032x}"
        assert trace_id_of(sent.submission.traceparent) == mine
        assert trace_id_of(with_current_trace(JOB).traceparent) == mine
        assert with_current_trace(named) is named
        with trace_submission(named) as other:
            assert other.submission.traceparent == OTHER
    assert with_current_trace(JOB) is JOB


def test_a_span_of_a_submission_tells_what_where_and_never_the_payload() -> None:
    program = Program()
    with submission_span("report.csv", "reports", TRACEPARENT, program.provider) as span:
        made = span.get_span_context()
    ended = program.span
    assert (ended.name, ended.kind) == ("submit report.csv", SpanKind.PRODUCER)
    assert ended.parent
    assert f"{ended.parent.span_id:016x}" == "b7ad6b7169203331"
    assert f"{made.trace_id:032x}" == TRACE_ID
    assert dict(ended.attributes or {}) == {
        "messaging.system": "asyncjob",
        "messaging.operation.name": "submit",
        "messaging.operation.type": "send",
        "messaging.destination.name": "reports",
        "asyncjob.type": "report.csv",
        "asyncjob.queue": "reports",
    }


def test_a_refusal_is_told_by_its_type_and_not_by_its_words() -> None:
    program = Program()
    with (
        pytest.raises(DuplicateJobError),
        submission_span("t", "default", None, program.provider),
    ):
        raise DuplicateJobError("secret", job_id="other")
    ended = program.span
    assert ended.attributes
    assert ended.attributes["error.type"] == "DuplicateJobError"
    assert not ended.status.is_ok
    assert "secret" not in ended.to_json()


def test_what_is_not_sampled_stays_so() -> None:
    provider = TracerProvider(sampler=ParentBased(ALWAYS_OFF), shutdown_on_exit=False)
    with submission_span("t", "default", f"{TRACEPARENT[:-2]}00", provider) as span:
        context = span.get_span_context()
    assert f"{context.trace_id:032x}" == TRACE_ID
    assert not context.trace_flags.sampled
