"""The retry policies under `examples/policies`: what each of them makes a failed job wait."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

from asyncjob.json_types import JsonObject, child
from asyncjob.lifecycle.job_view import read_job
from asyncjob.lifecycle.phase_change import Failure, fail
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.policy import (
    BUILT_IN_POLICY,
    Category,
    EffectivePolicy,
    base_retry_delay,
    is_retryable_category,
    read_policy_layer,
    resolve_policy,
    retry_delay,
)
from asyncjob.models.job import AsyncJob

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "examples" / "policies"
PAGES = ROOT / "docs"

NOW = "2026-01-01T12:00:00.000000Z"
LARGEST_DRAW = 1 - 2**-53


@dataclass(frozen=True)
class Expected:
    """Delays in seconds before jitter, one per retry granted; `jitter` is a share."""

    file: str
    delays: tuple[float, ...]
    jitter: float


EXPECTED = (
    Expected("doubling-from-2s.yaml", (2, 4, 8), 0.2),
    Expected("doubling-from-5s.yaml", (5, 10, 20), 0),
    Expected("doubling-from-30s.yaml", (30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600), 0),
    Expected("fixed-5s.yaml", (5, 5, 5, 5, 5), 0.2),
    Expected("timeout-is-final.yaml", (2, 4, 8), 0.2),
)

each_policy = pytest.mark.parametrize("expected", EXPECTED, ids=lambda expected: expected.file)


def load(file: str) -> JsonObject:
    manifest: JsonObject = yaml.safe_load((FOLDER / file).read_text())
    return manifest


def policy_of(file: str) -> EffectivePolicy:
    return resolve_policy(read_policy_layer(child(load(file), "spec")))


def failed(
    file: str, category: str, *, reason: Reason | None = None
) -> tuple[Phase, Reason | None]:
    """Return what becomes of the job of a manifest when its first attempt fails."""
    policy = policy_of(file)
    status: JsonObject = {
        "phase": "Running",
        "attempt": 1,
        "claim": "c",
        "effective": policy.to_json(),
    }
    job = read_job({**load(file), "status": status})
    failure = Failure(type="Error", category=category, message="it broke", reason=reason)
    move = fail(job, failure, now=NOW, jitter_sample=0.5)
    return move.target, move.reason


def test_every_manifest_of_the_folder_has_its_expectation_here() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(case.file for case in EXPECTED)


@each_policy
def test_a_manifest_is_a_job_by_the_model_and_says_nothing_the_model_does_not_know(
    expected: Expected,
) -> None:
    manifest = load(expected.file)

    job = AsyncJob.model_validate(manifest)

    dumped = job.model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert dumped == manifest
    assert f"{job.metadata.name}.yaml" == expected.file


@each_policy
def test_a_manifest_says_in_its_first_line_what_it_is_for(expected: Expected) -> None:
    first, second = (FOLDER / expected.file).read_text().splitlines()[:2]

    assert first.startswith("# ")
    assert first.endswith(".")
    assert not second.startswith("#")


@each_policy
def test_as_many_retries_are_granted_as_delays_are_expected(expected: Expected) -> None:
    assert policy_of(expected.file).max_retries == len(expected.delays)


@each_policy
def test_without_jitter_the_delays_are_exactly_these(expected: Expected) -> None:
    policy = replace(policy_of(expected.file), jitter=0.0)

    for retry, seconds in enumerate(expected.delays):
        assert base_retry_delay(policy, retry) == seconds
        assert {
            retry_delay(policy, retry, jitter_sample) for jitter_sample in (0.0, 0.5, LARGEST_DRAW)
        } == {seconds}


@each_policy
def test_with_jitter_the_delays_stay_within_its_bounds_and_reach_them(expected: Expected) -> None:
    policy = policy_of(expected.file)

    assert policy.jitter == expected.jitter
    for retry, seconds in enumerate(expected.delays):
        low, high = seconds * (1 - expected.jitter), seconds * (1 + expected.jitter)
        drawn = [retry_delay(policy, retry, jitter_sample / 100) for jitter_sample in range(100)]
        assert all(low <= value <= high for value in drawn)
        assert drawn == sorted(drawn)
        assert retry_delay(policy, retry, 0.0) == pytest.approx(low)
        assert retry_delay(policy, retry, 0.5) == pytest.approx(seconds)
        assert retry_delay(policy, retry, LARGEST_DRAW) == pytest.approx(high)


def test_the_built_in_policy_spelled_out_is_the_built_in_policy() -> None:
    assert policy_of("doubling-from-2s.yaml") == BUILT_IN_POLICY


def test_the_policy_capped_at_an_hour_stays_there_however_often_it_is_retried() -> None:
    policy = policy_of("doubling-from-30s.yaml")

    assert [base_retry_delay(policy, retry) for retry in (6, 7, 8, 100, 10_000)] == [1920] + [
        3600
    ] * 4


@pytest.mark.parametrize("category", list(Category))
def test_only_a_timeout_is_final_where_the_policy_says_so(category: Category) -> None:
    policy = policy_of("timeout-is-final.yaml")

    assert is_retryable_category(policy, category) is (category is not Category.TIMEOUT)


def test_a_timed_out_attempt_becomes_a_dead_letter_that_says_so() -> None:
    timed_out = failed("timeout-is-final.yaml", Category.TIMEOUT, reason=Reason.EXECUTION_TIMEOUT)

    assert timed_out == (Phase.DEAD_LETTER, Reason.EXECUTION_TIMEOUT)


def test_any_other_failure_under_that_policy_is_tried_again() -> None:
    assert failed("timeout-is-final.yaml", Category.NETWORK) == (
        Phase.RETRYING,
        Reason.HANDLER_FAILED,
    )


def test_under_the_built_in_policy_a_timed_out_attempt_is_tried_again() -> None:
    timed_out = failed("doubling-from-2s.yaml", Category.TIMEOUT, reason=Reason.EXECUTION_TIMEOUT)

    assert timed_out == (Phase.RETRYING, Reason.EXECUTION_TIMEOUT)


@each_policy
def test_the_documentation_points_at_the_manifest(expected: Expected) -> None:
    pages = list((PAGES / "explanation" / "coming-from").glob("*.md"))

    assert any(f"examples/policies/{expected.file}" in page.read_text() for page in pages)
