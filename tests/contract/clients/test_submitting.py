"""Submitting jobs: the same by every client."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from asyncjob import RetryPolicy
from asyncjob.client import Jobs
from asyncjob.client.errors import (
    DuplicateJobError,
    InTheWayError,
    InvalidSubmissionError,
    JobExistsError,
    KeyReusedError,
)
from asyncjob.rest.listing import Selection
from asyncjob.rest.submission import Submission
from asyncjob.submission import key_name
from contract.clients.full_stack import ScenarioScope

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

CROWD = 16


class Email(BaseModel):
    to: str
    at: datetime


def at_once(number: int, do: Callable[[int], Any]) -> list[Any]:
    """Do it so many times at once; returns results and refusals."""

    def tried(index: int) -> Any:
        try:
            return do(index)
        except InTheWayError as error:
            return error

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(tried, range(number)))


def test_a_job_is_submitted_with_every_option(jobs: Jobs, scope: ScenarioScope) -> None:
    soon = datetime(2040, 1, 1, 12, tzinfo=UTC)
    before = jobs.submit("echo", queue=scope.queue)
    done = jobs.submit(
        "echo",
        Email(to="a@b.c", at=soon),
        queue=scope.queue,
        labels=scope.label,
        priority=7,
        not_before=soon,
        not_after=soon + timedelta(days=1),
        depends_on=[before],
        timeout=timedelta(minutes=2),
        retry=RetryPolicy(max_retries=1),
        ttl=timedelta(hours=1),
        concurrency_key="c",
        traceparent="00-a",
    )
    job = jobs.get(done.id)
    assert done.created
    assert job.payload == {"to": "a@b.c", "at": "2040-01-01T12:00:00Z"}
    assert (job.queue, job.priority) == (scope.queue, 7)
    assert scope.label.items() <= job.labels.items()
    assert (job.not_before, job.not_after) == (
        "2040-01-01T12:00:00.000Z",
        "2040-01-02T12:00:00.000Z",
    )
    assert [one.name for one in job.depends_on] == [before.id]
    assert (job.max_retries, job.concurrency_key, job.traceparent) == (1, "c", "00-a")
    assert job.history[0].phase == "Created"
    assert jobs.history(done.id)[0] == job.history[0]


def test_the_same_key_is_the_same_job_and_another_body_is_refused(
    jobs: Jobs, scope: ScenarioScope
) -> None:
    key = scope.name("ümläut key / with anything?")
    first = jobs.submit("echo", {"b": 1, "a": 2.0}, queue=scope.queue, idempotency_key=key)
    again = jobs.submit("echo", {"a": 2, "b": 1}, queue=scope.queue, idempotency_key=key)
    assert (first.created, again.created) == (True, False)
    assert first.id == again.id == key_name(scope.full_stack.namespace, key)
    with pytest.raises(KeyReusedError) as caught:
        jobs.submit("echo", {"a": 3}, queue=scope.queue, idempotency_key=key)
    assert caught.value.job_id == first.id


def test_a_crowd_with_one_key_gets_one_job(jobs: Jobs, scope: ScenarioScope) -> None:
    key = scope.name("crowd")
    found = at_once(
        CROWD,
        lambda _: jobs.submit(
            "echo", 1, queue=scope.queue, idempotency_key=key, labels=scope.label
        ),
    )
    assert {one.id for one in found} == {key_name(scope.full_stack.namespace, key)}
    assert sum(one.created for one in found) == 1
    assert scope.count() == 1


def test_a_name_is_taken_once(jobs: Jobs, scope: ScenarioScope) -> None:
    name = scope.name("named")
    first = jobs.submit("echo", 1, name=name, queue=scope.queue)
    again = jobs.submit("echo", 1, name=name, queue=scope.queue)
    assert (first.id, first.created, again.id, again.created) == (name, True, name, False)
    with pytest.raises(JobExistsError) as caught:
        jobs.submit("echo", 2, name=name, queue=scope.queue)
    assert caught.value.job_id == name


def test_a_deduplication_id_is_held_until_its_job_has_finished(
    jobs: Jobs, scope: ScenarioScope
) -> None:
    id_ = scope.name('dedup, with="odd" \\ signs')

    def submit(number: int) -> Any:
        return jobs.submit("echo", number, queue=scope.queue, deduplication_id=id_)

    first = submit(0)
    for _ in range(2):
        with pytest.raises(DuplicateJobError) as caught:
            submit(0)
        assert caught.value.job_id == first.id
        jobs.cancel(first.id)
        jobs.wait(first.id, 30)
        first = submit(1)
    assert first.created
    assert jobs.get(first.id).deduplication_id == id_


def test_a_redrive_that_would_give_the_id_two_holders_is_refused(
    jobs: Jobs, scope: ScenarioScope
) -> None:
    id_ = scope.name("redriven")
    retry = RetryPolicy(max_retries=0)
    dead = jobs.submit("fail", "broken", retry=retry, deduplication_id=id_, labels=scope.label)
    jobs.wait(dead.id, 30)
    holder = jobs.submit("echo", queue=scope.queue, deduplication_id=id_)
    with pytest.raises(DuplicateJobError) as caught:
        jobs.redrive(dead.id)
    assert caught.value.job_id == holder.id
    many = jobs.redrive_many(Selection(label=scope.selector), limit=5)
    assert (many.done, [one.id for one in many.failed]) == ([], [dead.id])
    assert jobs.get(dead.id).redrives == 0
    jobs.cancel(holder.id)
    jobs.wait(holder.id, 30)
    jobs.redrive(dead.id)


def test_of_a_crowd_with_one_deduplication_id_one_is_accepted(
    jobs: Jobs, scope: ScenarioScope
) -> None:
    id_ = scope.name("crowd")
    found = at_once(
        CROWD,
        lambda number: jobs.submit("echo", number, queue=scope.queue, deduplication_id=id_),
    )
    accepted = [one for one in found if not isinstance(one, InTheWayError)]
    refused = [one for one in found if isinstance(one, DuplicateJobError)]
    assert len(accepted) == 1
    assert len(refused) == CROWD - 1
    assert {one.job_id for one in refused} == {accepted[0].id}


def test_a_deduplication_id_is_held_by_a_job_applied_with_kubectl_too(
    jobs: Jobs, scope: ScenarioScope
) -> None:
    applied = scope.name("applied")
    scope.apply(applied, deduplicationId=applied)
    with pytest.raises(DuplicateJobError) as caught:
        jobs.submit("echo", queue=scope.queue, deduplication_id=applied)
    assert caught.value.job_id == applied


def test_key_and_deduplication_id_go_together(jobs: Jobs, scope: ScenarioScope) -> None:
    both = {"idempotency_key": scope.name("key"), "deduplication_id": scope.name("id")}

    def submit(payload: int) -> Any:
        return jobs.submit("echo", payload, queue=scope.queue, **both)  # type: ignore[arg-type]  # two of the options

    first = submit(1)
    assert submit(1).id == first.id
    jobs.cancel(first.id)
    jobs.wait(first.id, 30)
    again = submit(1)
    assert (again.id, again.created, again.phase) == (first.id, False, "Cancelled")
    with pytest.raises(KeyReusedError):
        submit(2)


def test_of_a_crowd_with_one_key_and_as_many_deduplication_ids_one_is_accepted(
    jobs: Jobs, scope: ScenarioScope
) -> None:
    key = scope.name("key")

    def submit(number: int) -> Any:
        return jobs.submit(
            "echo",
            queue=scope.queue,
            labels=scope.label,
            idempotency_key=key,
            deduplication_id=scope.name(f"id-{number}"),
            not_before=datetime(2040, 1, 1, tzinfo=UTC),
        )

    found = at_once(CROWD, submit)
    accepted = [index for index, one in enumerate(found) if not isinstance(one, InTheWayError)]
    assert len(accepted) == 1
    assert sum(isinstance(one, KeyReusedError) for one in found) == CROWD - 1
    winner = found[accepted[0]]
    for job in list(jobs.list(Selection(label=scope.selector))):
        whole = jobs.get(job.id)
        taken_back = whole.cancelling or whole.phase == "Cancelled"
        assert taken_back is (job.id != winner.id)
    again = submit(accepted[0])
    assert (again.id, again.created) == (winner.id, False)
    with pytest.raises(KeyReusedError) as caught:
        submit(accepted[0] + 1)
    assert caught.value.job_id == winner.id
    jobs.cancel(winner.id)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"payload": {"a": float("nan")}}, "payload"),
        ({"payload": 2**70}, "payload"),
        ({"payload": "\ud800"}, "payload"),
        ({"payload": "x" * 1_100_000}, "payload"),
        ({"payload": object()}, "payload"),
        ({"queue": "No Queue"}, "queue"),
        ({"priority": 1001}, "priority"),
        ({"labels": {"asyncjob.dev/parent": "x"}}, "labels.asyncjob.dev/parent"),
        ({"name": "a", "idempotency_key": "b"}, "name"),
        ({"not_before": "2026-02-30T00:00:00Z"}, "notBefore"),
        ({"retry": {"max_retries": -1}}, "retryPolicy"),
    ],
)
def test_what_cannot_be_a_job_is_refused_by_its_field(
    jobs: Jobs, options: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidSubmissionError) as caught:
        jobs.submit("echo", **options)
    assert caught.value.errors[0].field.startswith(field)


def test_what_only_the_api_server_refuses_says_why(jobs: Jobs, scope: ScenarioScope) -> None:
    name = scope.name("self")
    with pytest.raises(InvalidSubmissionError, match="cannot depend on itself"):
        jobs.submit("echo", name=name, depends_on=[name], queue=scope.queue)


def test_of_many_each_is_accepted_or_refused_by_itself(jobs: Jobs, scope: ScenarioScope) -> None:
    many = [
        Submission(type="echo", payload=number, queue=scope.queue, name=scope.name(f"m{number}"))
        for number in range(105)
    ]
    many[3] = many[2].model_copy(update={"payload": "other"})
    many[50] = many[50].model_copy(update={"payload": float("nan")})
    items = list(jobs.submit_many(iter(many)))
    assert len(items) == 105
    refused = {index: item.error for index, item in enumerate(items) if item.error}
    assert set(refused) == {3, 50}
    assert refused[3].job_id == scope.name("m2")
    assert refused[3].status == 409
    assert (refused[50].status, "nan" in refused[50].detail) == (422, True)
    assert [item.job.id for item in items if item.job][:3] == [
        scope.name(f"m{number}") for number in range(3)
    ]
