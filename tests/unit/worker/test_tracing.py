"""Tracing: off unless asked for, and in one trace per job when it is on."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler

from asyncjob import WorkerApp
from asyncjob.app import JobContext, steps
from asyncjob.errors import ConfigError
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.testing import run_handler_sync
from asyncjob.tracing.context import current_traceparent, trace_id_of
from asyncjob.tracing.provider import wants_export
from asyncjob.tracing.spans import step_span
from asyncjob_worker.execution.attempt import job_info_of
from asyncjob_worker.tracing import NO_TRACING, tracing_of
from asyncjob_worker.tracing.spans import OpenTelemetryTracing
from support.parts.callbacks import ignore
from support.parts.worker_parts import held

UID = "01234567-89ab-cdef-0123-456789abcdef"
TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE_ID}-b7ad6b7169203331-01"


def context_of(span: ReadableSpan) -> trace.SpanContext:
    context = span.get_span_context()
    assert context
    return context


class Traced:
    """Spans that end in memory."""

    def __init__(self, sampler: Sampler = ALWAYS_ON) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.provider = provider
        self.tracing = OpenTelemetryTracing(provider=provider, close=ignore)

    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def trace_ids(self) -> set[str]:
        return {f"{context_of(span).trace_id:032x}" for span in self.spans()}


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, False),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_spans_are_exported_only_where_the_environment_says_so(
    environ: Mapping[str, str], wanted: bool
) -> None:
    assert wants_export(environ) is wanted


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER=zipkin"),
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "OTEL_EXPORTER_OTLP_PROTOCOL",
        ),
    ],
)
def test_an_exporter_that_is_not_known_is_refused_by_name(
    environ: Mapping[str, str], named: str
) -> None:
    with pytest.raises(ConfigError, match=named):
        tracing_of(environ)


def test_a_disabled_sdk_is_respected() -> None:
    environ = {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"}
    assert tracing_of(environ) is NO_TRACING


def test_a_worker_that_does_not_trace_loads_nothing_of_opentelemetry() -> None:
    program = (
        "import sys, asyncjob_worker.cli, asyncjob_worker.isolation.child\n"
        "from asyncjob_worker.tracing import NO_TRACING, tracing_of\n"
        "from asyncjob.tracing.context import current_traceparent\n"
        "assert tracing_of({}) is NO_TRACING and current_traceparent() is None\n"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_without_tracing_a_job_keeps_the_context_of_its_submitter() -> None:
    job = held(spec={"traceparent": TRACEPARENT})
    with NO_TRACING.attempt(job) as traced, NO_TRACING.attach(TRACEPARENT):
        traced.ended(None)
        assert job_info_of(job).traceparent == TRACEPARENT


def test_claim_and_run_belong_to_the_submitter_and_the_handler_to_the_run() -> None:
    traced = Traced()
    job = held(spec={"traceparent": TRACEPARENT})
    with traced.tracing.attempt(job) as attempt:
        inside = current_traceparent()
        attempt.ended(PhaseChange(Phase.SUCCEEDED, None, {}, {}))
    claim, run = traced.spans()
    assert (claim.name, run.name) == ("claim echo", "run echo")
    assert traced.trace_ids() == {TRACE_ID}
    assert [f"{one.parent.span_id:016x}" for one in (claim, run) if one.parent] == [
        "b7ad6b7169203331"
    ] * 2
    assert job_info_of(job).traceparent == inside
    assert inside == f"00-{TRACE_ID}-{context_of(run).span_id:016x}-01"
    assert current_traceparent() is None


@pytest.mark.parametrize("uid", [UID, "no-uuid-at-all", "0" * 32])
def test_attempts_of_a_job_without_a_trace_share_the_one_of_its_uid(uid: str) -> None:
    traced = Traced()
    for attempt in (1, 2):
        with traced.tracing.attempt(held(uid=uid, attempt=attempt)):
            pass
    [trace_id] = traced.trace_ids()
    assert trace_id_of(f"00-{trace_id}-{'1' * 16}-01")
    assert (trace_id == UID.replace("-", "")) == (uid == UID)


def test_a_traceparent_that_is_none_is_taken_for_no_trace() -> None:
    traced = Traced()
    with traced.tracing.attempt(held(uid=UID, spec={"traceparent": "garbage"})):
        pass
    assert traced.trace_ids() == {UID.replace("-", "")}


def test_the_sampler_is_asked_about_jobs_that_nobody_traces() -> None:
    traced = Traced(ALWAYS_OFF)
    job = held(uid=UID)
    with traced.tracing.attempt(job):
        pass
    assert traced.spans() == []
    assert job_info_of(job).traceparent is not None
    assert str(job_info_of(job).traceparent).endswith("-00"), "children are not sampled either"


def test_a_failed_attempt_says_why_but_shows_no_message() -> None:
    traced = Traced()
    with traced.tracing.attempt(held()) as attempt:
        error = {"type": "ValueError", "category": "Internal", "message": "secret"}
        attempt.ended(PhaseChange(Phase.DEAD_LETTER, Reason.NOT_RETRYABLE, {"error": error}, {}))
    with traced.tracing.attempt(held()) as attempt:
        attempt.ended(None)
    _, failed, _, fenced = traced.spans()
    attributes = failed.attributes or {}
    assert attributes["asyncjob.reason"] == "NotRetryable"
    assert attributes["error.type"] == "ValueError"
    assert not failed.status.is_ok
    assert fenced.status.description == "fenced"
    assert "secret" not in failed.to_json()


def test_spans_of_another_process_belong_to_the_run_it_was_told_of() -> None:
    traced = Traced()
    tracer = traced.provider.get_tracer("handler")
    with traced.tracing.attach(TRACEPARENT), tracer.start_as_current_span("mine"):
        pass
    with traced.tracing.attach(None), tracer.start_as_current_span("alone"):
        pass
    mine, alone = traced.spans()
    assert f"{context_of(mine).trace_id:032x}" == TRACE_ID
    assert alone.parent is None


def test_a_child_belongs_to_the_span_it_is_submitted_in() -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    submitted = []

    class Children:
        def submit(self, order: object) -> object:
            submitted.append(order)
            raise NotImplementedError

    info = job_info_of(held(spec={"traceparent": TRACEPARENT}))
    children: object = Children()
    context = JobContext(info, held(), remaining=lambda: 9.0, children=children)  # type: ignore[arg-type]  # one method
    with pytest.raises(NotImplementedError):
        context.submit("echo", 1)
    with (
        provider.get_tracer("handler").start_as_current_span("mine") as span,
        pytest.raises(NotImplementedError),
    ):
        context.submit("echo", 1)
    outside, inside = (order.manifest["spec"]["traceparent"] for order in submitted)  # type: ignore[attr-defined]
    assert outside == TRACEPARENT
    assert trace_id_of(inside) == f"{span.get_span_context().trace_id:032x}"
    assert len({order.fingerprint for order in submitted}) == 1, "a retry is the same order"  # type: ignore[attr-defined]
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_a_step_has_a_span_in_that_of_the_attempt_which_shows_its_key_and_no_message() -> None:
    traced = Traced()
    with (
        traced.tracing.attempt(held()),
        pytest.raises(ValueError, match="secret"),
        step_span("echo", "charge", traced.provider),
    ):
        raise ValueError("secret")
    *_, step, run = traced.spans()
    assert step.parent
    assert step.parent.span_id == context_of(run).span_id
    assert step.name == "step echo"
    assert (step.attributes or {})["asyncjob.step"] == "charge"
    assert (step.attributes or {})["error.type"] == "ValueError"
    assert not step.status.is_ok
    assert "secret" not in step.to_json()


def test_each_try_of_a_step_has_a_span_and_a_kept_result_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys: list[str] = []

    @contextmanager
    def noted(_: str, key: str) -> Iterator[None]:
        keys.append(key)
        yield

    monkeypatch.setattr(steps, "step_span", noted)
    tries: list[int] = []

    def fail_once() -> int:
        tries.append(1)
        return 1 // (len(tries) - 1)

    app = WorkerApp()

    @app.handler("echo")
    def handler(job: JobContext) -> None:
        job.step("done", fail_once).result()
        job.step("twice", fail_once, retries=1, pause=0.0).result()

    run_handler_sync(app, "echo", steps={"done": 1}, raise_errors=True)
    assert keys == ["twice", "twice"]
