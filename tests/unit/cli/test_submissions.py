"""Submissions made of files and options, checked before anything is sent."""

from typing import Any

import click
import pytest
from click.testing import CliRunner

from asyncjob.cli.input.documents import Document
from asyncjob.cli.input.submissions import (
    InvalidInputError,
    payload_documents,
    prepare_submissions,
    submission_fields,
    submission_options,
)
from asyncjob.rest.submission import Submission


def options(*words: str) -> dict[str, Any]:
    """Return the fields that options set, as the command has them parsed."""
    kept: dict[str, Any] = {}

    @click.command()
    @submission_options
    def command(**given: Any) -> None:
        kept.update(submission_fields(given))

    result = CliRunner().invoke(command, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return kept


def one(fields: dict[str, Any], *words: str) -> Submission:
    return prepare_submissions([Document("", fields)], options(*words))[0].submission


ALL = (
    *("--name=n", "--queue=mail", "--label=team=mail", "-l", "x=", "--priority=-5"),
    *("--not-before=2026-11-21", "--not-after=2026-11-22T00:00:00Z", "--depends-on=asyncjob/a"),
    *("--depends-on=b:any", "--queue-timeout=1m", "--execution-timeout=2m", "--lease=30s"),
    *("--cancel-grace=4s", "--ttl=1h", "--concurrency-key=c", "--traceparent=t", "--suspend"),
    *("--max-retries=0", "--backoff=fixed", "--initial-delay=0", "--max-delay=1m", "--jitter=0"),
    *("--retry-on=Network", "--no-retry-on=Validation", "--no-retry-on=NotFound"),
    *("--max-crashes=1", "--deadline=2h", "--payload-secret=s/k", "--header=A=1", "--header=A=2"),
    *("--route-param=id=3", "--query-param=q=a=b"),
)


def test_every_field_of_a_submission_has_an_option() -> None:
    made = one({"type": "t"}, *ALL)
    exclusive = {"payload", "idempotency_key", "deduplication_id"}
    assert made.model_fields_set == set(Submission.model_fields) - exclusive
    keyed = options("--idempotency-key=i", "--deduplication-id=d")
    assert keyed == {"idempotencyKey": "i", "deduplicationId": "d"}


@pytest.mark.parametrize(
    ("word", "dependency"),
    [
        ("page", {"name": "page"}),
        ("page:any", {"name": "page", "outcome": "Any"}),
        ("asyncjob.asyncjob.dev/page", {"name": "page"}),
        ("array/images", {"array": "images"}),
        ("aa/images:any", {"array": "images", "outcome": "Any"}),
        ("asyncarray.asyncjob.dev/images", {"array": "images"}),
    ],
)
def test_a_dependency_is_a_job_or_an_array_by_what_stands_before_its_name(
    word: str, dependency: dict[str, str]
) -> None:
    assert options("--depends-on", word)["dependsOn"] == [dependency]


def test_options_mean_what_they_say() -> None:
    made = one({"type": "t"}, *ALL).model_dump(by_alias=True, exclude_none=True, mode="json")
    assert made["labels"] == {"team": "mail", "x": ""}
    assert made["dependsOn"] == [
        {"name": "a", "outcome": "Succeeded"},
        {"name": "b", "outcome": "Any"},
    ]
    assert made["retryPolicy"] == {
        "maxRetries": 0,
        "backoff": "Fixed",
        "initialDelaySeconds": 0,
        "maxDelaySeconds": 60,
        "jitter": 0,
        "retryOn": ["Network"],
        "noRetryOn": ["Validation", "NotFound"],
        "maxCrashes": 1,
    }
    assert made["payloadFrom"] == {"secretKeyRef": {"name": "s", "key": "k"}}
    assert made["request"]["headers"] == {"A": ["1", "2"]}
    assert made["request"]["queryParams"] == {"q": ["a=b"]}
    assert made["deadlineSeconds"] == 7200
    assert (made["executionTimeoutSeconds"], made["notBefore"]) == (120, "2026-11-21T00:00:00Z")


def test_no_option_sets_no_field() -> None:
    assert options() == {}


def test_options_win_over_files_and_leave_the_rest_of_a_policy_alone() -> None:
    fields = {
        "type": "t",
        "queue": "mail",
        "labels": {"a": "1", "b": "1"},
        "retryPolicy": {"maxRetries": 9, "jitter": 0.5},
    }
    made = one(fields, "--queue=other", "-l", "b=2", "--max-retries=1")
    assert (made.queue, made.labels) == ("other", {"a": "1", "b": "2"})
    assert made.retry_policy
    assert (made.retry_policy.max_retries, made.retry_policy.jitter) == (1, 0.5)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "jobs.json: type: It is required"),
        ({"type": "t", "priorty": 1}, "priorty: Unknown field"),
        ({"type": "t", "cancel": True}, "cancel: Unknown field"),
        ({"type": "t", "retryPolicy": {"maxRetries": -1}}, "retryPolicy.maxRetries"),
        ({"type": "t", "payload": float("nan")}, "payload is nan"),
        ({"type": "t", "labels": {"a b": "c"}}, "labels.a b"),
    ],
)
def test_mistakes_name_the_field(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        prepare_submissions([Document("jobs.json", fields)], {})


def test_all_mistakes_are_told_at_once_but_not_a_thousand() -> None:
    bad = [Document(f"f:{n}", {}) for n in range(12)]
    with pytest.raises(InvalidInputError) as told:
        prepare_submissions([*bad, Document("f:12", {"type": "t"})], {})
    lines = str(told.value).splitlines()
    assert len(lines) == 11
    assert lines[-1] == "… and 2 more"


@pytest.mark.parametrize("flag", ["--name=n", "--idempotency-key=k"])
def test_what_would_make_many_jobs_one_is_refused(flag: str) -> None:
    many = payload_documents("t", [Document("a", 1), Document("b", 2)])
    with pytest.raises(InvalidInputError, match="is for one job, not 2"):
        prepare_submissions(many, options(flag))


@pytest.mark.parametrize(
    "words", [["--label=x"], ["--label==x"], ["--payload-secret=s"], ["--not-before=soon"]]
)
def test_an_option_that_cannot_be_read_is_refused_by_name(words: list[str]) -> None:
    command = click.command()(submission_options(lambda **_: None))
    result = CliRunner().invoke(command, words)
    assert result.exit_code == 2
    assert words[0].split("=", maxsplit=1)[0] in result.output
