"""What a handler sees and says: context, categories, signals."""

import asyncio
import json
import socket
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from asyncjob import Category, Fail, JobContext, Retry
from asyncjob.app import JobInfo
from asyncjob.app.categories import categorize
from asyncjob.free_json import FreeJsonError
from asyncjob.json_types import Json


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
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_built_in_errors_have_their_categories(error: Exception, category: str) -> None:
    assert categorize(error, {}) == category


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
