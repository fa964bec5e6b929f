"""What is sent is taken at its word: text is no number, and a field that nobody knows is told."""

from typing import Any

import pytest

from asyncjob.rest.listing import BulkAsk
from asyncjob.rest.strict import schema_mismatches
from asyncjob.submission import InvalidSubmissionError, read_submission


@pytest.mark.parametrize(
    ("field", "value", "where"),
    [
        ("priority", "5", "priority"),
        ("priority", True, "priority"),
        ("priority", 5.5, "priority"),
        ("suspend", "no", "suspend"),
        ("suspend", 0, "suspend"),
        ("executionTimeoutSeconds", "60", "executionTimeoutSeconds"),
        ("retryPolicy", {"maxRetries": "3"}, "retryPolicy.maxRetries"),
        ("retryPolicy", {"maxretries": 3}, "retryPolicy.maxretries"),
        ("retry_policy", {}, "retry_policy"),
        ("dependsOn", [{"name": "a"}, {"name": "b", "typo": 1}], "dependsOn.1.typo"),
    ],
)
def test_a_submission_says_exactly_what_it_means(field: str, value: Any, where: str) -> None:
    with pytest.raises(InvalidSubmissionError) as refused:
        read_submission({"type": "t", field: value}, prefix="jobs.3")
    assert [one.field for one in refused.value.errors] == [f"jobs.3.{where}"]


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(InvalidSubmissionError) as refused:
        read_submission({"priority": "5", "queue": "No Queue"})
    assert {one.field for one in refused.value.errors} == {"type", "queue", "priority"}


def test_what_is_exact_is_taken() -> None:
    whole = {
        "type": "t",
        "priority": 5.0,
        "labels": {"a": "5", "b": "true"},
        "payload": {"any": [1, "1", None, True, {"x": 1.5}]},
        "retryPolicy": {"maxRetries": 3, "initialDelaySeconds": 2, "backoff": "Exponential"},
        "suspend": None,
    }
    assert read_submission(whole).priority == 5


def test_inner_requests_are_looked_at_too() -> None:
    asked = {"selection": {"phase": ["DeadLetter"], "olderThanSeconds": "60"}, "dryRun": "yes"}
    assert [one.field for one in schema_mismatches(BulkAsk, asked)] == [
        "selection.olderThanSeconds",
        "dryRun",
    ]
