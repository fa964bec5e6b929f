"""Numbers of the core that stand elsewhere too: in the schema, on a page, or in one another."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from asyncjob_operator.core.arrays.decide import LARGE_WRITE_INTERVAL, WRITE_INTERVAL
from asyncjob_operator.core.dependencies import MAX_EDGES_FOLLOWED
from asyncjob_operator.core.events import HOUR, EventReason, job_event
from asyncjob_operator.core.leader_election import SAFETY_MARGIN_SECONDS
from asyncjob_operator.core.options import MAX_RESERVATIONS
from asyncjob_operator.core.schedules.due_runs import MAX_TIMES_CONSIDERED
from asyncjob_operator.core.schedules.reservation import (
    CREATE_WINDOW_SECONDS,
    MAX_CLAIMS,
    MAX_RESERVED_RUNS,
    REQUEST_TIMEOUT_SECONDS,
    TAKEOVER_DELAY_SECONDS,
)
from asyncjob_operator.core.schedules.status import MAX_MESSAGE_LENGTH
from support.objects.snapshots import job

ROOT = Path(__file__).parents[3]
LIMITS = (ROOT / "docs/reference/limits.md").read_text(encoding="utf-8")


def bound(plural: str, field: str, kind: str) -> Any:
    """Return a bound that the schema sets to a field of a status."""
    text = (ROOT / f"crds/{plural}.yaml").read_text(encoding="utf-8")
    crd = yaml.load(text, Loader=yaml.CSafeLoader)
    found = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    for name in field.split("."):
        found = found["properties"][name]
    return found[kind]


@pytest.mark.parametrize(
    ("number", "plural", "field", "kind"),
    [
        (MAX_CLAIMS, "asynccronjobs", "claims", "maximum"),
        (MAX_CLAIMS, "asyncarrays", "claims", "maximum"),
        (MAX_MESSAGE_LENGTH, "asynccronjobs", "message", "maxLength"),
        (MAX_RESERVATIONS, "asyncqueues", "reservations", "maxItems"),
        (MAX_RESERVED_RUNS, "asynccronjobs", "reserved.runs", "maxItems"),
    ],
    ids=["claims of cron jobs", "claims of arrays", "messages", "reservations", "reserved runs"],
)
def test_a_status_is_filled_as_far_as_the_schema_allows(
    number: int, plural: str, field: str, kind: str
) -> None:
    assert number == bound(plural, field, kind)


@pytest.mark.parametrize(
    ("number", "row"),
    [
        (MAX_EDGES_FOLLOWED, "Dependencies in which a cycle is looked for"),
        (MAX_TIMES_CONSIDERED, "Missed times that are looked at"),
    ],
)
def test_what_is_looked_at_is_as_much_as_the_page_says(number: int, row: str) -> None:
    assert f"| {row} | {number:,} |" in LIMITS


def test_an_operator_that_was_frozen_never_creates_beside_the_next() -> None:
    """Whoever holds a reservation creates for five seconds, and a request takes five at most."""
    assert (CREATE_WINDOW_SECONDS, REQUEST_TIMEOUT_SECONDS) == (5.0, 5.0)
    assert TAKEOVER_DELAY_SECONDS == 1.5 * (CREATE_WINDOW_SECONDS + REQUEST_TIMEOUT_SECONDS)


def test_a_leader_stops_a_second_before_another_may_begin() -> None:
    assert SAFETY_MARGIN_SECONDS == 1.0


def test_an_array_is_written_twice_a_second_and_a_large_one_every_five_seconds() -> None:
    assert (WRITE_INTERVAL, LARGE_WRITE_INTERVAL) == (0.5, 5.0)


def test_events_about_jobs_are_posted_each_and_others_once_an_hour() -> None:
    assert job_event(job(), EventReason.DEAD_LETTER, "late").min_interval == 0.0
    assert HOUR == 60 * 60


@pytest.mark.parametrize("reason", EventReason)
def test_each_reason_of_an_event_is_explained(reason: EventReason) -> None:
    page = (ROOT / "docs/reference/errors/reasons-of-events.md").read_text(encoding="utf-8")
    assert f"\n## {reason.value}\n" in page
