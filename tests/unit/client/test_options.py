"""What `submit` takes, as callers in Python say it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest

from asyncjob.client.options import ArrayOptionsGiven, to_array_submission, to_submission
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob.models.job import Dependency
from asyncjob.rest.arrays import SubmittedArray
from asyncjob.rest.submission import Submission, Submitted
from asyncjob.submission import InvalidSubmissionError

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def made(payload: Any = None, **options: Any) -> Submission:
    return to_submission("t", payload, options, now=NOW)  # type: ignore[arg-type]  # any options


@dataclass
class Point:
    x: int
    id: UUID


def test_payloads_become_json() -> None:
    point = Point(1, UUID(int=0))
    assert made(point).payload == {"x": 1, "id": "00000000-0000-0000-0000-000000000000"}
    assert made((1, 2)).payload == [1, 2]
    assert made().payload is None


def test_times_are_moments_and_spans_are_seconds() -> None:
    zone = timezone(timedelta(hours=2))
    job = made(
        not_before=timedelta(minutes=1),
        not_after=datetime(2026, 1, 1, 3, tzinfo=zone),
        timeout=timedelta(minutes=2),
        deadline=timedelta(hours=1),
        queue_timeout=30,
        lease=timedelta(seconds=10.4),
        ttl=timedelta(days=1),
        cancel_grace=0,
    )
    assert (job.not_before, job.not_after) == (
        "2026-01-01T00:01:00.000Z",
        "2026-01-01T01:00:00.000Z",
    )
    assert (job.execution_timeout_seconds, job.queue_timeout_seconds) == (120, 30)
    assert (job.lease_duration_seconds, job.ttl_seconds_after_finished) == (10, 86_400)
    assert (job.cancel_grace_seconds, job.deadline_seconds) == (0, 3600)


def test_a_time_without_a_zone_is_refused_by_its_field() -> None:
    with pytest.raises(InvalidSubmissionError, match=r"notAfter: .*no time zone"):
        made(not_after=datetime(2026, 1, 1))  # noqa: DTZ001  # the fault under test


def test_dependencies_are_names_jobs_or_entries() -> None:
    done = Submitted(id="b", created=True, phase="Queued")
    entry = Dependency(name="c", children=True)
    job = made(depends_on=["a", done, entry])
    assert job.depends_on == [Dependency(name="a"), Dependency(name="b"), entry]


def test_arrays_are_depended_on_by_what_a_client_has_of_them() -> None:
    array = SubmittedArray(name="thumbs", created=True, phase="Pending")
    entry = Dependency(array="other")
    assert made(depends_on=[array, entry]).depends_on == [Dependency(array="thumbs"), entry]
    options: ArrayOptionsGiven = {"depends_on": ["a", array], "not_before": timedelta(hours=1)}
    submission = to_array_submission("thumb", 3, options, now=NOW)
    assert submission.depends_on == [Dependency(name="a"), Dependency(array="thumbs")]
    assert submission.not_before == format_timestamp(NOW + timedelta(hours=1))
    with pytest.raises(InvalidSubmissionError, match="dependsOn: thumbs is one array, not a list"):
        made(depends_on=array)


def test_options_that_are_none_say_nothing() -> None:
    assert made(queue=None, retry=None) == Submission(type="t")


def test_a_whole_submission_stands_for_itself() -> None:
    whole = Submission(type="t", queue="mail")
    assert to_submission(whole, None, {}, now=NOW) is whole
    with pytest.raises(InvalidSubmissionError, match="in itself"):
        to_submission(whole, {"a": 1}, {}, now=NOW)


def test_an_option_that_nobody_knows_is_named() -> None:
    with pytest.raises(InvalidSubmissionError, match="nonsense: Unknown field"):
        made(nonsense=1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"depends_on": "other"},
            r"dependsOn: 'other' is one job, not a list of jobs: \['other'\]",
        ),
        ({"not_before": timedelta.max}, "notBefore: .* is out of range"),
        ({"not_after": datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))}, "notAfter: .*"),
    ],
)
def test_what_python_takes_but_no_job_does_names_its_field(options: Any, said: str) -> None:
    with pytest.raises(InvalidSubmissionError, match=said):
        made(**options)
