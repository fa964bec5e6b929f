"""The names and numbers of the pure code are those that CRDs and pages give to users.

A page may be generated from the code; it is compared as it is committed, so a change of the code
alone fails here, and somebody decides whether users are to see it.
"""

import re
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from asyncjob.lifecycle.arrays.phases import ArrayPhase, ArrayReason
from asyncjob.lifecycle.arrays.records import RecordFormat
from asyncjob.lifecycle.claim import EMPTY_POLICY_LAYER, Candidate
from asyncjob.lifecycle.derived_jobs import MAX_LABEL_LENGTH, RERUN_FIELDS
from asyncjob.lifecycle.phase_change import (
    MAX_ERROR_MESSAGE_LENGTH,
    MAX_ERROR_TYPE_LENGTH,
    MAX_HISTORY_ENTRIES,
    MAX_HISTORY_MESSAGE_LENGTH,
    MAX_IMMEDIATE_RELEASES,
    MAX_MESSAGE_LENGTH,
    MAX_RELEASES,
)
from asyncjob.lifecycle.phases import FINAL_PHASES, FINISHED_PHASES, Phase, Reason
from asyncjob.lifecycle.policy import (
    BUILT_IN_POLICY,
    DEFAULT_CANCEL_GRACE_SECONDS,
    DEFAULT_QUEUE_TIMEOUT_SECONDS,
    MAX_DURATION_SECONDS,
    MAX_PRIORITY,
    MAX_REQUESTED_DELAY_SECONDS,
    Backoff,
    Category,
    EffectivePolicy,
    base_retry_delay,
)
from asyncjob.lifecycle.schedules import (
    PERSISTENT_REASONS,
    ConcurrencyPolicy,
    CronReason,
    MisfirePolicy,
)
from asyncjob.lifecycle.transitions import TRANSITIONS, Actor

ROOT = Path(__file__).parents[3]
REFERENCE = ROOT / "docs/reference"


@cache
def schema(resource: str) -> Any:
    """Return the schema of a resource as it is installed."""
    crd = yaml.safe_load((ROOT / f"crds/{resource}.yaml").read_text(encoding="utf-8"))
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]


def field(resource: str, path: str) -> Any:
    """Return the schema of a field, by its path."""
    found = {"properties": schema(resource)}
    for name in path.split("."):
        found = found["items"] if name == "[]" else found["properties"][name]
    return found


def values(enumeration: type[StrEnum]) -> list[str]:
    return sorted(member.value for member in enumeration)


def first_cells(page: str, title: str) -> list[str]:
    """Return what stands in backticks in the first cells of the table below a title."""
    section = (REFERENCE / page).read_text(encoding="utf-8").split(f"\n## {title}\n")[1]
    return sorted(re.findall(r"^\| `([^`]+)` \|", section.split("\n## ")[0], re.MULTILINE))


@pytest.mark.parametrize(
    ("resource", "path", "enumeration"),
    [
        ("asyncjobs", "status.phase", Phase),
        ("asyncjobs", "status.reason", Reason),
        ("asyncjobs", "spec.retryPolicy.backoff", Backoff),
        ("asyncarrays", "spec.items.from.format", RecordFormat),
        ("asyncarrays", "status.phase", ArrayPhase),
        ("asyncarrays", "status.reason", ArrayReason),
        ("asynccronjobs", "spec.concurrencyPolicy", ConcurrencyPolicy),
        ("asynccronjobs", "spec.misfirePolicy", MisfirePolicy),
        ("asynccronjobs", "status.reason", CronReason),
    ],
)
def test_closed_lists_are_those_of_the_crd(
    resource: str, path: str, enumeration: type[StrEnum]
) -> None:
    assert sorted(field(resource, path)["enum"]) == values(enumeration)


def test_categories_are_those_of_the_workers_page() -> None:
    assert first_cells("worker.md", "Categories of errors") == values(Category)


def test_actors_are_those_of_the_page_about_the_lifecycle() -> None:
    page = (ROOT / "docs/explanation/lifecycle.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| ([^|]+) \|", page, re.MULTILINE)
    by_change: dict[tuple[str, str], set[str]] = {}
    for source, target, who in rows:
        by_change.setdefault((source, target), set()).update(who.split(" or "))
    assert by_change == {
        (one.source.value, one.target.value): {actor.value for actor in one.actors}
        for one in TRANSITIONS
    }
    assert values(Actor) == ["operator", "worker"]


def test_phases_without_a_way_on_or_out() -> None:
    assert {phase.value for phase in FINISHED_PHASES} == {"Succeeded", "DeadLetter", "Cancelled"}
    assert {phase.value for phase in FINAL_PHASES} == {"Succeeded", "Cancelled"}


def test_what_holds_as_long_as_the_spec_is_not_told_of_one_event() -> None:
    assert {reason.value for reason in PERSISTENT_REASONS} == {
        "Suspended",
        "BadSchedule",
        "BadTimeZone",
        "NeverFires",
    }


def test_a_rerun_takes_what_describes_the_work() -> None:
    not_taken = {
        "notBefore", "notAfter", "dependsOn", "deduplicationId", "deduplicationSeconds",
        "idempotencyKey", "traceparent", "tracestate", "cancel", "cancelCascade", "suspend",
        "redrive", "rerun", "rerunOf", "signals",
    }  # fmt: skip
    assert set(field("asyncjobs", "spec")["properties"]) - not_taken == set(RERUN_FIELDS)


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("spec.queueTimeoutSeconds", DEFAULT_QUEUE_TIMEOUT_SECONDS),
        ("spec.cancelGraceSeconds", DEFAULT_CANCEL_GRACE_SECONDS),
        ("spec.executionTimeoutSeconds", BUILT_IN_POLICY.execution_timeout_seconds),
        ("spec.leaseDurationSeconds", BUILT_IN_POLICY.lease_duration_seconds),
        ("spec.retryPolicy.maxRetries", BUILT_IN_POLICY.max_retries),
        ("spec.retryPolicy.maxCrashes", BUILT_IN_POLICY.max_crashes),
        ("spec.retryPolicy.initialDelaySeconds", BUILT_IN_POLICY.initial_delay_seconds),
        ("spec.retryPolicy.maxDelaySeconds", BUILT_IN_POLICY.max_delay_seconds),
        ("spec.retryPolicy.jitter", BUILT_IN_POLICY.jitter),
    ],
)
def test_what_is_built_in_is_what_the_crd_says(path: str, number: float) -> None:
    said = re.search(r"Built in: ([0-9.]+)\.", field("asyncjobs", path)["description"])
    assert said is not None
    assert float(said[1]) == number


@pytest.mark.parametrize(
    ("path", "bound", "number"),
    [
        ("spec.priority", "maximum", MAX_PRIORITY),
        ("spec.priority", "minimum", -MAX_PRIORITY),
        ("spec.executionTimeoutSeconds", "maximum", MAX_DURATION_SECONDS),
        ("status.history", "maxItems", MAX_HISTORY_ENTRIES),
        ("status.history.[].message", "maxLength", MAX_HISTORY_MESSAGE_LENGTH),
        ("status.message", "maxLength", MAX_MESSAGE_LENGTH),
        ("status.error.type", "maxLength", MAX_ERROR_TYPE_LENGTH),
        ("status.error.message", "maxLength", MAX_ERROR_MESSAGE_LENGTH),
    ],
)
def test_bounds_are_those_of_the_crd(path: str, bound: str, number: int) -> None:
    assert field("asyncjobs", path)[bound] == number


@pytest.mark.parametrize(
    ("what", "limit"),
    [
        ("Delay of `Retry(after=…)`", f"{MAX_REQUESTED_DELAY_SECONDS / 86400:.0f} days"),
        ("Releases before they have a backoff", str(MAX_IMMEDIATE_RELEASES)),
        ("Releases", str(MAX_RELEASES)),
    ],
)
def test_limits_are_those_of_the_page_about_limits(what: str, limit: str) -> None:
    page = (REFERENCE / "limits.md").read_text(encoding="utf-8")
    assert f"\n| {what} | {limit} |" in page
    assert MAX_REQUESTED_DELAY_SECONDS == 7 * 86400  # not only the days: no second more


def test_labels_are_as_long_as_kubernetes_takes() -> None:
    assert MAX_LABEL_LENGTH == 63


def test_a_candidate_of_which_no_more_is_known_is_a_new_job_that_nothing_holds_back() -> None:
    plain = Candidate("j", "7", "echo")
    explicit = Candidate("j", "7", "echo", 0, 0, 0, False, False, EMPTY_POLICY_LAYER)
    assert plain == explicit


def test_delays_double_until_no_number_of_seconds_could_grow() -> None:
    policy = EffectivePolicy(initial_delay_seconds=2.0**-60, max_delay_seconds=1e9, jitter=0)
    assert base_retry_delay(policy, 64) == 2 * base_retry_delay(policy, 63) == 16
    assert base_retry_delay(policy, 65) == base_retry_delay(policy, 10**6) == 16
