"""What a handler sees and says: context, categories, signals."""

import asyncio
import json
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import aiohttp
import botocore.exceptions  # type: ignore[import-untyped]  # it has no types
import pytest
import requests
import urllib3
from pydantic import BaseModel, ValidationError
from structlog.testing import capture_logs

from asyncjob import Category, Fail, JobContext, Retry
from asyncjob.app import JobInfo
from asyncjob.app.errors import (
    LIBRARY_CATEGORIES,
    ChildFailedError,
    SubmitError,
    SubmitForbiddenError,
    SubmitRefusedError,
    categorize,
)
from asyncjob.free_json import FreeJsonError
from asyncjob.json_types import Json
from asyncjob.tracing.context import normalize_traceparent, trace_id_of


class Sink:
    """Notes what a handler reports."""

    def __init__(self) -> None:
        self.reports: list[Any] = []

    def progress(self, percent: int, message: str | None) -> None:
        self.reports.append((percent, message))

    def checkpoint(self, value: Json) -> None:
        self.reports.append(value)


def context(sink: Sink, **options: Any) -> JobContext:
    info = JobInfo(namespace="ns", name="n", uid="u", type="t", queue="q", attempt=2)
    return JobContext(info, sink, remaining=lambda: 12.5, **options)


def test_it_tells_the_facts_of_the_attempt() -> None:
    job = context(Sink())
    assert (job.name, job.attempt, job.fencing_token) == ("n", 2, "u/2")
    assert (job.last_checkpoint, job.seconds_left, job.cancelled) == (None, 12.5, False)
    job.stop()
    assert job.cancelled


TRACE = "ab" * 16


def test_its_log_says_which_job_attempt_and_trace_from_any_thread() -> None:
    info = JobInfo("ns", "n", "u", "t", "q", 2, traceparent=f"00-{TRACE}-{'cd' * 8}-01")
    job = JobContext(info, Sink(), remaining=lambda: 1.0)
    with capture_logs() as logs:
        thread = threading.Thread(target=lambda: job.log.info("speaks", extra=1))
        thread.start()
        thread.join()
    bound = {"job": "n", "namespace": "ns", "type": "t", "attempt": 2, "trace_id": TRACE}
    assert logs == [{**bound, "extra": 1, "event": "speaks", "log_level": "info"}]
    assert job.log is job.log
    assert job.traceparent == info.traceparent


@pytest.mark.parametrize(
    ("traceparent", "trace_id"),
    [
        (f"00-{TRACE}-{'cd' * 8}-01", TRACE),
        (f"cc-{TRACE}-{'cd' * 8}-01-more", TRACE),
        (f"00-{'0' * 32}-{'cd' * 8}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"ff-{TRACE}-{'cd' * 8}-01", None),
        (f"00-{TRACE}-{'cd' * 8}-01-more", None),
        (f"00-{TRACE}", None),
        (None, None),
    ],
)
def test_the_trace_id_is_read_from_the_trace_context(
    traceparent: str | None, trace_id: str | None
) -> None:
    assert trace_id_of(traceparent) == trace_id


def test_a_trace_context_of_a_later_version_is_carried_as_one_of_ours() -> None:
    assert normalize_traceparent(f"cc-{TRACE}-{'cd' * 8}-01-more") == f"00-{TRACE}-{'cd' * 8}-01"
    assert normalize_traceparent("00-nonsense") is None
    assert normalize_traceparent(None) is None


def test_a_context_that_nobody_submits_for_says_so() -> None:
    with pytest.raises(SubmitError, match="child jobs are not available in this runner"):
        context(Sink()).submit("t")
    with pytest.raises(SubmitError, match="child jobs are not available"):
        context(Sink()).children()
    context(Sink()).stop()


def test_a_job_of_a_schedule_knows_the_time_it_is_for() -> None:
    info = replace(context(Sink()).info, scheduled_time="2026-01-01T03:00:00.000Z")
    job = JobContext(info, Sink(), remaining=lambda: 1.0)
    assert job.scheduled_time == datetime(2026, 1, 1, 3, tzinfo=UTC)
    assert context(Sink()).scheduled_time is None


@pytest.mark.parametrize(("given", "told"), [(-5, 0), (12.9, 12), (100, 100), (250, 100)])
def test_progress_is_a_whole_percentage(given: float, told: int) -> None:
    sink = Sink()
    context(sink).progress(given)
    assert sink.reports == [(told, None)]


def test_reports_may_be_awaited_or_not() -> None:
    async def work(job: JobContext) -> None:
        await job.progress(1)
        await job.checkpoint([1])
        job.progress(2)

    sink = Sink()
    asyncio.run(work(context(sink)))
    assert sink.reports == [(1, None), [1], (2, None)]


def test_a_message_that_is_not_utf8_is_made_so() -> None:
    sink = Sink()
    context(sink).progress(1, "file \udcff.csv")
    assert sink.reports == [(1, "file ?.csv")]


def test_a_checkpoint_that_cannot_be_stored_is_refused_where_it_is_made() -> None:
    sink = Sink()
    with pytest.raises(FreeJsonError, match="the checkpoint has 12 bytes, the limit is 10"):
        context(sink, max_bytes=10).checkpoint("x" * 10)
    assert sink.reports == []


class _Broken(BaseModel):
    number: int


def _invalid() -> ValidationError:
    with pytest.raises(ValidationError) as error:
        _Broken.model_validate({})
    return error.value


_KEY: Any = SimpleNamespace(host="h", port=1, is_ssl=False, ssl=None)
_POOL: Any = SimpleNamespace()


@pytest.mark.parametrize(
    ("error", "category"),
    [
        (TimeoutError(), Category.TIMEOUT),
        (ConnectionResetError(), Category.NETWORK),
        (BrokenPipeError(), Category.NETWORK),
        (socket.gaierror(), Category.NETWORK),
        (PermissionError(), Category.PERMISSION),
        (FileNotFoundError(), Category.NOT_FOUND),
        (KeyError(), Category.NOT_FOUND),
        (json.JSONDecodeError("", "", 0), Category.VALIDATION),
        (UnicodeDecodeError("utf-8", b"", 0, 1, ""), Category.VALIDATION),
        (_invalid(), Category.VALIDATION),
        (RuntimeError(), Category.INTERNAL),
        (subprocess.SubprocessError(), Category.INTERNAL),
        (ExceptionGroup("", [TimeoutError()]), Category.INTERNAL),
        (ChildFailedError(), Category.DEPENDENCY),
        (SubmitForbiddenError(), Category.PERMISSION),
        (SubmitRefusedError(), Category.VALIDATION),
        (aiohttp.ClientConnectorDNSError(_KEY, OSError()), Category.NETWORK),
        (aiohttp.ServerDisconnectedError(), Category.NETWORK),
        (aiohttp.ConnectionTimeoutError(), Category.TIMEOUT),
        (aiohttp.ClientPayloadError(), Category.NETWORK),
        (requests.ConnectionError(), Category.NETWORK),
        (requests.ConnectTimeout(), Category.TIMEOUT),
        (requests.ReadTimeout(), Category.TIMEOUT),
        (requests.TooManyRedirects(), Category.INTERNAL),
        (urllib3.exceptions.ReadTimeoutError(_POOL, "/", ""), Category.TIMEOUT),
        (urllib3.exceptions.NewConnectionError(_POOL, ""), Category.NETWORK),
        (botocore.exceptions.EndpointConnectionError(endpoint_url="x"), Category.NETWORK),
        (botocore.exceptions.ConnectTimeoutError(endpoint_url="x"), Category.TIMEOUT),
        (botocore.exceptions.ReadTimeoutError(endpoint_url="x"), Category.TIMEOUT),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_built_in_errors_have_their_categories(error: Exception, category: str) -> None:
    assert categorize(error, {}) == category


@pytest.mark.parametrize("path", sorted(LIBRARY_CATEGORIES))
def test_errors_of_libraries_that_are_here_are_where_the_table_says(path: str) -> None:
    module, _, name = path.rpartition(".")
    found = sys.modules.get(module)
    if found is None:
        assert module.partition(".")[0] in {"httpx", "httpcore", "redis"}
        return
    kind = getattr(found, name)
    assert (kind.__module__, kind.__qualname__) == (module, name)
    assert issubclass(kind, Exception)


def test_the_apps_own_category_wins_and_the_nearest_class_before_a_farther_one() -> None:
    class Base(TimeoutError): ...  # noqa: N818

    class Near(Base): ...

    assert categorize(Near(), {Base: "Mine"}) == "Mine"
    assert categorize(Near(), {Base: "Mine", Near: "Nearer"}) == "Nearer"
    assert categorize(TimeoutError(), {Exception: "Any"}) == Category.TIMEOUT


@pytest.mark.parametrize("after", [float("nan"), float("inf"), float("-inf"), None])
def test_a_retry_at_no_time_at_all_takes_the_policys_backoff(after: float | None) -> None:
    assert Retry(after=after).after is None


def test_fail_says_why() -> None:
    assert (str(Fail("no such user")), Fail("x").category) == ("no such user", "Internal")
