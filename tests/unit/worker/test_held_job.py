"""What a worker keeps of a job that it holds."""

import itertools
import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest

from asyncjob.app.context import Stop
from asyncjob.deep_json import TruncatedObject, loads, truncate_text
from asyncjob_worker.clock import boottime
from asyncjob_worker.leases.held_job import HeldJob
from support.parts import worker_parts
from support.parts.worker_parts import held


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(Stop, 2)))
def test_of_two_reasons_to_stop_the_higher_counts_whichever_came_first(
    first: Stop, second: Stop
) -> None:
    order = [
        *(Stop.DRAINING, Stop.TIMED_OUT, Stop.REFUSED),
        *(Stop.PAST_DEADLINE, Stop.CANCELLED, Stop.FENCED),
    ]
    job = held()
    job.stop(first)
    job.stop(second)
    assert job.stopped is max(first, second, key=order.index)


def test_whoever_runs_the_handler_is_told_of_each_stop() -> None:
    told: list[Stop | None] = []
    job = held()
    with job.reacting(lambda: told.append(job.stopped)):
        job.stop(Stop.DRAINING)
        job.stop(Stop.CANCELLED)
    job.stop(Stop.FENCED)
    assert told == [Stop.DRAINING, Stop.CANCELLED]


def test_times_are_counted_from_sending() -> None:
    job = held(sent_at=100.0)
    assert (job.renewal_due_at, job.lease_expires_at, job.times_out_at) == (120.0, 160.0, 1900.0)
    job.sent_at = 200.0
    assert (job.renewal_due_at, job.lease_expires_at, job.times_out_at) == (220.0, 260.0, 1900.0)


def test_reports_coalesce_and_the_newest_wins() -> None:
    job = held()
    assert job.unsaved_report() is None
    job.progress(10, None)
    job.checkpoint({"row": 1})
    job.progress(20, "on")
    draft = job.unsaved_report()
    assert draft
    assert draft.progress == {"percent": 20, "message": "on"}
    assert draft.checkpoint == {"row": 1}


def test_a_checkpoint_that_is_stored_is_not_sent_again_with_later_progress() -> None:
    job = held()
    job.checkpoint({"row": 1})
    job.stored_version = job.latest_report.version
    assert job.unsaved_report() is None
    job.progress(20, None)
    draft = job.unsaved_report()
    assert draft
    assert draft.progress == {"percent": 20}
    assert not draft.checkpoint_version


def test_a_long_progress_message_is_cut_with_a_mark() -> None:
    job = held()
    job.progress(1, "x" * 5000)
    assert job.latest_report.progress
    message = job.latest_report.progress["message"]
    assert isinstance(message, str)
    assert len(message) == 1024
    assert message.endswith("…")


@pytest.mark.parametrize(("spec", "grace"), [({}, 30.0), ({"cancelGraceSeconds": 0}, 0.0)])
def test_the_grace_of_a_cancel_is_the_jobs_own_or_built_in(
    spec: dict[str, int], grace: float
) -> None:
    assert held(spec=spec).cancel_grace == grace


def nest(levels: int) -> str:
    return "[" * levels + "]" * levels


def claimed(
    *,
    signal: str,
    payload: str = "1",
    checkpoint: str = "1",
    managed: str = "1",
    levels: int | None = None,
) -> Any:
    """Return a claim's answer as a worker reads it, cut at this many levels if at any."""
    job = worker_parts.job(spec={"signals": "SIGNALS", "payload": "PAYLOAD"}, checkpoint="CHECKED")
    job["metadata"]["managedFields"] = "MANAGED"
    parts = {
        "SIGNALS": f'{{"go": {{"sentBy": "ada", "payload": {signal}}}, "ok": {{"payload": [1]}}}}',
        "PAYLOAD": payload,
        "CHECKED": checkpoint,
        "MANAGED": managed,
    }
    text = json.dumps(job)
    for name, part in parts.items():
        text = text.replace(f'"{name}"', part)
    if levels is None:
        return loads(text.encode())
    kept, left = truncate_text(text.encode(), levels)
    cut = TruncatedObject(json.loads(kept))
    cut.levels = left
    return cut


@pytest.mark.parametrize(
    ("signal", "levels"), [(66, None), (300, None), (2000, None), (2000, 500), (28, 31), (2000, 31)]
)
def test_a_signal_that_is_too_deep_says_so_and_nothing_else_is_the_worse_for_it(
    signal: int, levels: int | None
) -> None:
    answer = claimed(signal=nest(signal), managed=nest(signal), payload=nest(20), levels=levels)
    job = HeldJob.from_response(answer, 0.0)
    assert isinstance(answer, TruncatedObject) == bool(levels or signal == 2000)
    assert not job.too_deep
    assert job.spec["payload"] == json.loads(nest(20))
    signals: Any = job.spec["signals"]
    assert signals["ok"] == {"payload": [1]}
    assert signals["go"].keys() == {"sentBy", "payloadRefused"}
    assert "nested deeper than" in signals["go"]["payloadRefused"]


@pytest.mark.parametrize(("deep", "levels"), [(2000, None), (30, 31), (2000, 31)])
@pytest.mark.parametrize("place", ["payload", "checkpoint"])
def test_of_a_job_of_which_anything_else_was_cut_it_is_known(
    place: str, deep: int, levels: int | None
) -> None:
    for signal in (1, 2000):
        answer = claimed(signal=nest(signal), levels=levels, **{place: nest(deep)})
        assert HeldJob.from_response(answer, 0.0).too_deep


def test_a_signal_that_is_too_large_says_so() -> None:
    signals: Any = HeldJob.from_response(claimed(signal=json.dumps("x" * 20_000)), 0.0).spec
    assert "20002 bytes" in signals["signals"]["go"]["payloadRefused"]
    assert "signals" not in held().spec


@pytest.mark.parametrize(
    ("deadline_in", "ends_in", "why"),
    [
        (None, 1800, Stop.TIMED_OUT),
        (2000, 1800, Stop.TIMED_OUT),
        (1800, 1800, Stop.PAST_DEADLINE),
        (5, 5, Stop.PAST_DEADLINE),
        (-5, -5, Stop.PAST_DEADLINE),
    ],
)
def test_an_attempt_ends_at_its_time_limit_or_at_the_jobs_deadline(
    deadline_in: float | None, ends_in: float, why: Stop
) -> None:
    ours = held(sent_at=1000.0)
    if deadline_in is not None:
        ours.deadline_at = 1000.0 + deadline_in
    assert ours.ends_at == 1000 + ends_in
    ours.stop_at_end()
    assert ours.stopped is why


def test_the_deadline_is_kept_by_the_api_servers_clock() -> None:
    """It shows three minutes past the creation, whatever the worker's machine shows."""
    raw = worker_parts.job(spec={"deadlineSeconds": 300})
    raw["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    ours = HeldJob.from_response(raw, 0.0)
    before = boottime()
    ours.set_deadline(datetime(2026, 1, 1, 0, 3, tzinfo=UTC).timestamp)
    assert before + 120 <= ours.deadline_at <= boottime() + 120


def test_a_job_without_a_deadline_asks_for_no_time() -> None:
    ours = held()
    ours.set_deadline(lambda: 1 / 0)
    assert ours.deadline_at == math.inf
