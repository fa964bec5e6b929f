"""What is sent is taken at its word: text is no number, and a field that nobody knows is told."""

import json
import re
from typing import Any

import pytest

from asyncjob.models.field_errors import PATTERN_DETAILS
from asyncjob.rest.listing import BulkAsk
from asyncjob.rest.strict import schema_mismatches
from asyncjob.rest.submission import Submission
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


@pytest.mark.parametrize(
    ("data", "where", "told"),
    [
        ([], "job", "It should be an object"),
        ({"type": "t", "notBefore": "0000-01-01T00:00:00Z"}, "notBefore", "of the years 1000 to"),
        ({"type": "t", "queue": "No Queue"}, "queue", "lower-case letters, digits and - alone"),
        ({"type": "t", "name": "A"}, "name", "lower-case letters, digits, - and . alone"),
        ({"type": "-"}, "type", "letters, digits and . _ / - alone"),
        ({"type": "t", "labels": []}, "labels", "It should be an object"),
        ({"type": "t", "dependsOn": {}}, "dependsOn", "It should be a list"),
        ({"type": 5}, "type", "It should be text"),
        ({}, "type", "It is required"),
    ],
)
def test_what_a_field_may_be_is_told_in_words(data: Any, where: str, told: str) -> None:
    with pytest.raises(InvalidSubmissionError) as refused:
        read_submission(data)
    [problem] = refused.value.errors
    assert problem.field == where
    assert told in problem.detail


def test_each_pattern_of_a_submission_has_words() -> None:
    found = set(
        re.findall(r'"pattern": "((?:[^"\\]|\\.)*)"', json.dumps(Submission.model_json_schema()))
    )
    assert {json.loads(f'"{pattern}"') for pattern in found} <= set(PATTERN_DETAILS)
    assert found
