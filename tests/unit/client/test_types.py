"""The clients as type checkers see them: an ignore that is not needed fails `make lint`."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from inspect import getdoc, signature
from typing import Any, assert_type

import pytest

import asyncjob
from asyncjob import (
    AsyncJobs,
    AsyncJobsClient,
    AsyncKubernetesJobsClient,
    Jobs,
    JobsClient,
    KubernetesJobsClient,
    RetryPolicy,
    Selection,
    Submission,
)
from asyncjob.json_types import Json
from asyncjob.rest.jobs import Job, JobSummary
from asyncjob.rest.listing import BulkReport
from asyncjob.rest.resources import QueueInfo
from asyncjob.rest.submission import BatchItem, Submitted

NAMES = [name for name in vars(Jobs) if not name.startswith("_")]


def plain(jobs: Jobs) -> None:
    """Use a client as its users do; never called."""
    done = jobs.submit(
        "t", {"a": 1}, queue="mail", retry=RetryPolicy(), not_before=datetime.now(UTC)
    )
    assert_type(done, Submitted)
    jobs.submit(Submission(type="t"))
    jobs.submit("t", timeout=timedelta(minutes=1), depends_on=["a", done])
    jobs.submit("t", priority="high")  # type: ignore[arg-type]  # a number
    jobs.submit("t", prio=1)  # type: ignore[call-arg]  # no such option
    assert_type(jobs.wait("j", 1.0, raise_on_failure=True, on_change=print), Job)
    assert_type(jobs.poll("j"), Iterator[Job])
    assert_type(jobs.list(Selection(queue="mail")), Iterator[JobSummary])
    assert_type(jobs.result("j"), Json)
    assert_type(jobs.submit_many([Submission(type="t")]), Iterator[BatchItem])
    assert_type(jobs.redrive_many(limit=1, dry_run=True), BulkReport)
    assert_type(jobs.queues(), list[QueueInfo])


async def in_a_loop(jobs: AsyncJobs) -> None:
    """Use a client as its users do; never called."""
    assert_type(await jobs.submit("t", {"a": 1}, queue="mail"), Submitted)
    assert_type(await jobs.wait("j"), Job)
    assert_type(jobs.poll("j"), AsyncIterator[Job])
    assert_type(await jobs.queues(), list[QueueInfo])


def as_interfaces(
    one: JobsClient,
    two: KubernetesJobsClient,
    three: AsyncJobsClient,
    four: AsyncKubernetesJobsClient,
) -> tuple[list[Jobs], list[AsyncJobs]]:
    """Return the clients as what they are."""
    return [one, two], [three, four]


@pytest.mark.parametrize("client", [JobsClient, KubernetesJobsClient])
@pytest.mark.parametrize("name", NAMES)
def test_a_plain_client_has_each_method_as_the_interface_has_it(client: Any, name: str) -> None:
    assert signature(getattr(client, name)) == signature(getattr(Jobs, name))
    assert getdoc(getattr(client, name)) == getdoc(getattr(Jobs, name))


@pytest.mark.parametrize("client", [AsyncJobsClient, AsyncKubernetesJobsClient])
@pytest.mark.parametrize("name", NAMES)
def test_an_async_client_has_each_method_as_the_interface_has_it(client: Any, name: str) -> None:
    assert signature(getattr(client, name)) == signature(getattr(AsyncJobs, name))
    mine, plain_one = signature(getattr(client, name)), signature(getattr(Jobs, name))
    assert list(mine.parameters) == list(plain_one.parameters)


def test_all_that_is_exported_is_there_and_nothing_else() -> None:
    assert all(hasattr(asyncjob, name) for name in asyncjob.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        asyncjob.nonsense  # type: ignore[attr-defined]  # noqa: B018  # that is the test
