"""What a handler asks for as a child job: the same again is the same, anything else is not."""

from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from pydantic import BaseModel

from asyncjob import RetryPolicy
from asyncjob.app.child_handles import Child, ChildSubmission
from asyncjob.app.child_jobs import ChildJobs, ChildRef
from asyncjob.app.child_manifest import ChildManifest, ChildOptions, ParentJob, build_child_manifest
from asyncjob.app.errors import SubmitRefusedError
from asyncjob.models.job import Dependency, DependencyOutcome
from asyncjob.names import ARRAY_KIND
from asyncjob.shards import shard_of

PARENT = ParentJob("report-42", "uid-1", "reports", priority=3, traceparent="00-a")


class Page(BaseModel):
    number: int


def order(
    payload: Any = None, *, type_: str = "page", parent: ParentJob = PARENT, **options: Any
) -> ChildManifest:
    return build_child_manifest(parent, type_, payload, ChildOptions(**options))


def spec(made: ChildManifest) -> Any:
    return made.manifest["spec"]


def test_a_payload_that_is_refused_names_the_way_out_only_where_it_is_one() -> None:
    with pytest.raises(SubmitRefusedError, match=r"limit is .*hand large data over by a reference"):
        order("x" * 2_000_000)
    with pytest.raises(SubmitRefusedError, match=r"the payload is nan, which JSON does not have$"):
        order(float("nan"))


def test_a_child_says_whose_it_is_and_inherits_queue_priority_and_trace() -> None:
    made = order(Page(number=1), key="p1")
    metadata: Any = made.manifest["metadata"]
    shard = str(shard_of(metadata["name"]))
    assert metadata["labels"] == {"asyncjob.dev/parent": "uid-1", "asyncjob.dev/shard": shard}
    assert metadata["annotations"]["asyncjob.dev/parent-name"] == "report-42"
    assert metadata["name"].startswith("report-42-")
    assert spec(made) == {
        "type": "page",
        "payload": {"number": 1},
        "queue": "reports",
        "priority": 3,
        "traceparent": "00-a",
    }


def test_a_job_may_depend_on_arrays_that_its_parent_has_submitted() -> None:
    array = Child(ChildRef("thumbs", "uid-a", ARRAY_KIND), cast("ChildJobs", None))
    job = Child(ChildRef("page", "uid-p"), cast("ChildJobs", None))
    sent = ChildSubmission("sent", Future(), ARRAY_KIND)
    made = order(depends_on=[array, job, sent, Dependency(array="other")])
    assert spec(made)["dependsOn"] == [
        {"array": "thumbs"},
        {"name": "page"},
        {"array": "sent"},
        {"array": "other", "outcome": "Succeeded"},
    ]


def test_all_options_are_put_where_they_belong() -> None:
    made = order(
        key="k",
        queue="q",
        priority=-5,
        retry=RetryPolicy(max_retries=1),
        timeout=30,
        not_before=datetime(2026, 1, 1, tzinfo=UTC),
        not_after="2026-01-02T00:00:00Z",
        deadline=90_000,
        depends_on=["a", order(name="b"), Dependency(name="c", outcome=DependencyOutcome.ANY)],
        concurrency_key="ck",
        deduplication_id="d",
        traceparent="00-b",
    )
    assert spec(made) == {
        "type": "page",
        "queue": "q",
        "priority": -5,
        "retryPolicy": {"maxRetries": 1},
        "executionTimeoutSeconds": 30,
        "notBefore": "2026-01-01T00:00:00.000Z",
        "notAfter": "2026-01-02T00:00:00Z",
        "deadlineSeconds": 90_000,
        "dependsOn": [{"name": "a"}, {"name": "b"}, {"name": "c", "outcome": "Any"}],
        "concurrencyKey": "ck",
        "deduplicationId": "d",
        "traceparent": "00-b",
    }


def test_the_name_follows_from_the_parents_uid_and_the_key() -> None:
    name = order({"a": 1}, key="k").name
    assert order({"a": 2}, key="k", type_="other").name == name
    assert order({"a": 1}, key="l").name != name
    assert order({"a": 1}, key="k", parent=ParentJob("report-42", "uid-2", "reports")).name != name


def test_without_a_key_it_follows_from_all_that_was_given() -> None:
    name = order({"a": 1, "b": 2}).name
    assert order({"b": 2, "a": 1}).name == name
    others = [order({"a": 1}), order({"a": 1, "b": 2}, type_="other")]
    others += [order({"a": 1, "b": 2}, priority=3), order({"a": 1, "b": 2}, timeout=1)]
    others += [order({"a": 1, "b": 2}, not_before="2026-01-02T00:00:00Z")]
    assert len({name, *(other.name for other in others)}) == 6


def test_what_it_inherits_does_not_change_a_child() -> None:
    raised = ParentJob("report-42", "uid-1", "reports", priority=9, traceparent="00-z")
    again = order({"a": 1}, parent=raised)
    assert (again.name, again.fingerprint) == (order({"a": 1}).name, order({"a": 1}).fingerprint)


def test_times_are_no_other_content_because_they_are_counted_from_now() -> None:
    first = order(1, key="k", not_before="2026-01-01T00:00:00Z")
    assert order(1, key="k", not_before="2026-01-01T00:00:09Z").fingerprint == first.fingerprint
    assert order(2, key="k", not_before="2026-01-01T00:00:00Z").fingerprint != first.fingerprint


def test_a_deadline_is_no_other_content_because_it_is_what_is_left_of_the_parents() -> None:
    first = order(1, key="k", deadline=3600)
    assert order(1, key="k", deadline=1800).fingerprint == first.fingerprint
    assert order(1, key="k").fingerprint == first.fingerprint
    assert order(2, key="k", deadline=3600).fingerprint != first.fingerprint


@pytest.mark.parametrize("name", ["p" * 253, "a" * 39 + ".-" + "b" * 100])
def test_a_long_name_of_a_parent_is_cut(name: str) -> None:
    made = order(1, parent=ParentJob(name, "u", "q"))
    assert len(made.name) <= 57
    assert ".-" not in made.name
    assert "--" not in made.name


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"priority": 5000}, "child .*: priority: "),
        ({"queue": "Not A Queue"}, "child .*: queue: "),
        ({"timeout": 0}, "child .*: executionTimeoutSeconds: "),
        ({"not_before": "tomorrow"}, "child .*: notBefore: "),
        ({"not_before": datetime(2026, 1, 1)}, "has no time zone"),  # noqa: DTZ001
        ({"payload": float("nan")}, "child of type 'page': the payload is nan"),
        ({"payload": "x" * 2_000_000}, r"has 2000002 bytes.*by a reference"),
    ],
)
def test_what_cannot_be_a_job_is_refused_by_name(given: Any, words: str) -> None:
    with pytest.raises(SubmitRefusedError, match=words):
        order(**given)
