"""What the API server refuses is not sent again and again, and is said once."""

from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from asyncjob.errors import InvalidError
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import job_status_path, queue_path, queue_status_path
from asyncjob.worker_lease import read_worker_lease
from asyncjob_operator.controllers.queue_status import QUEUE_STATUS_INTERVAL, QueueStatusWriter
from asyncjob_operator.controllers.workqueue import (
    MAX_REFUSED_BACKOFF,
    MAX_TRACKED_ITEMS,
    ItemBackoff,
)
from asyncjob_operator.core.admission.pending_queue import PendingJob, PendingQueue
from asyncjob_operator.core.admission.plan import (
    AdmissionSnapshot,
    ReservationState,
    plan_admission,
)
from asyncjob_operator.core.admission.rate_window import RateWindow
from asyncjob_operator.core.admission.reservations import NO_RESERVATIONS
from asyncjob_operator.core.options import QueueLimits
from asyncjob_operator.core.queue_stats import MAX_INT32, QueueStats, stats_fields
from asyncjob_operator.core.workers import MAX_SLOTS, QueueWorkers, worker_record
from asyncjob_operator.telemetry.quarantine import Quarantine
from support.in_memory.fake_session import FakeSession
from support.objects.snapshots import at, roll_lease, stamp
from support.parts.audience import Audience
from support.parts.callbacks import ignore
from support.parts.operator_harness import OperatorHarness

PATHS = [queue_status_path("ns", name) for name in ("bad", "good")]


class Writer:
    """Reports of two queues, of which the API server refuses one."""

    def __init__(self) -> None:
        self.now, self.session = 0.0, FakeSession()
        for name in ("bad", "good"):
            meta = {"namespace": "ns", "name": name}
            self.session.put(queue_path("ns", name), {"metadata": meta})
        session = cast("KubeSession", self.session)
        quarantine = Quarantine(lambda: self.now, lambda _kind: None)
        self.reports = QueueStatusWriter(
            session, self.survey, lambda: True, quarantine, lambda: self.now
        )

    async def survey(self) -> Any:
        return [(("ns", "bad"), {"slots": -1}), (("ns", "good"), {"slots": 1})]

    async def write(self) -> int:
        self.session.fail("PATCH", PATHS[0], InvalidError("slots: must be >= 0", status=422))
        return await self.reports.write(on_progress=ignore)


async def test_numbers_that_are_refused_are_tried_less_and_less_often_and_said_once() -> None:
    writer = Writer()
    rounds = 200
    with capture_logs() as logs:
        for number in range(rounds):
            writer.now = number * QUEUE_STATUS_INTERVAL
            await writer.write()
    patches = [path for method, path, _ in writer.session.requests if method == "PATCH"]
    assert patches.count(PATHS[1]) == rounds, "the other queue is not held up"
    assert 5 <= patches.count(PATHS[0]) <= 12
    said = [entry for entry in logs if entry["log_level"] == "warning"]
    assert len(said) == 1
    assert MAX_REFUSED_BACKOFF >= QUEUE_STATUS_INTERVAL


def test_a_failure_is_news_once_and_again_after_a_success_or_with_another_message() -> None:
    backoff = ItemBackoff(1.0, 60.0)
    assert [backoff.is_new_error("a", text) for text in ("x", "x", "y", "y")] == [True, False] * 2
    backoff.reset("a")
    assert backoff.is_new_error("a", "y")


def test_of_failures_of_what_is_gone_only_so_many_are_remembered() -> None:
    backoff = ItemBackoff(1.0, 60.0)
    for number in range(MAX_TRACKED_ITEMS + 10):
        backoff.record_failure(f"job-{number}")
    assert len(backoff._failures) == MAX_TRACKED_ITEMS
    assert backoff.failures("job-0") == 0
    assert backoff.failures(f"job-{MAX_TRACKED_ITEMS}") == 1


@pytest.mark.parametrize(("said", "counted"), [(-1_000_000, 0), (2**63, MAX_SLOTS), (4, 4)])
def test_slots_of_a_lease_are_no_fewer_than_none_and_no_more_than_a_worker_can_have(
    said: int, counted: int
) -> None:
    call = QueueWorkers()
    call.update("w", worker_record(read_worker_lease(roll_lease("w", 0, slots=said))), 0.0)
    assert call.slots == counted


def test_a_liars_lease_takes_no_slots_from_the_other_workers_of_its_queue() -> None:
    call = QueueWorkers()
    for pod, slots in (("honest", 4), ("liar", -1_000_000)):
        call.update(pod, worker_record(read_worker_lease(roll_lease(pod, 0, slots=slots))), 0.0)
    assert call.slots == 4
    line = PendingQueue()
    for number in range(10):
        line.add(PendingJob(f"u{number}", f"j{number}", "", "", 0, number))
    limits = QueueLimits(max_concurrency=3)
    table = AdmissionSnapshot(
        limits=limits,
        paused=False,
        reservations=NO_RESERVATIONS,
        active={},
        pending=line,
        rate_window=RateWindow(),
        slots=call.slots,
    )
    assert len(plan_admission(table, lambda _: ReservationState.IN_USE, at(0)).admitted) == 3


def test_no_number_of_a_queue_is_beyond_what_the_schema_takes() -> None:
    wild = QueueStats({Phase.QUEUED: 2**40}, 2**40, -1, 2**31, -5, paused=False)
    fields = stats_fields(wild, {}, stamp(0))
    assert fields
    assert fields["counts"] == [{"phase": "Queued", "count": MAX_INT32}]
    names = ("oldestQueuedSeconds", "workers", "slots", "finishedPerMinute")
    assert [fields[name] for name in names] == [MAX_INT32, 0, MAX_INT32, 0]


@pytest.mark.parametrize("time", ["1000-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "9999-99-99"])
async def test_a_forged_time_in_a_status_spoils_no_queues_numbers(time: str) -> None:
    audience = Audience()
    audience.queue()
    audience.queue("other")
    audience.see("job", lastTransitionTime=time)
    news = await audience.queue_stats.changed_statuses()
    assert {queue for queue, _ in news} == {("ns", "default"), ("ns", "other")}
    oldest = [fields["oldestQueuedSeconds"] for _, fields in news]
    assert all(isinstance(age, int) and 0 <= age <= MAX_INT32 for age in oldest)


async def test_a_move_that_is_refused_is_tried_seldom_and_said_once() -> None:
    harness = OperatorHarness()
    harness.create("job")
    harness.change_spec("job", cancel=True)
    path = job_status_path("ns", "job")
    with capture_logs() as logs:
        for _ in range(3):
            harness.session.fail(
                "PATCH", path, InvalidError("durationSeconds: too large", status=422)
            )
            await harness.settle()
            await harness.pass_time(61)
    assert sum(entry["log_level"] == "error" for entry in logs) == 1
    tries = [where for method, where, _ in harness.session.requests if method == "PATCH"]
    assert 3 <= tries.count(path) <= 9, "pauses from a second on, doubled each time"
