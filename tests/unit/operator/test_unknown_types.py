"""When a type counts as unknown: a doubt makes nobody a dead letter."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phases import Phase
from asyncjob.worker_lease import read_worker_lease
from asyncjob_operator.cache.workers import WorkerRegistry
from asyncjob_operator.core.decision import ChangePhase, TypeUnserved
from asyncjob_operator.core.options import DecisionOptions, QueueView, read_queue
from asyncjob_operator.core.snapshot import Snapshot
from asyncjob_operator.core.workers import (
    ALL_TYPES,
    MAX_REMEMBERED,
    NO_TYPES,
    AffectedTypes,
    QueueWorkers,
    UnservedType,
    worker_record,
)
from support.objects.snapshots import LEASE_SECONDS as DURATION
from support.objects.snapshots import at, job, judged, moved, roll_lease, seen

STRICT = QueueView(dead_letters_unknown_types=True)
MISSING = UnservedType(since=0.0, live_workers=2, listed_types=("a", "b"))


def waiting(
    view: JobView | None = None, missing: UnservedType | None = MISSING, **how: Any
) -> Snapshot:
    """Return a claimable job of a queue that gives up unknown types."""
    snapshot = seen(view or job(), queue=how.pop("queue", STRICT), **how)
    return replace(snapshot, unserved_type=missing, options=DecisionOptions(unknown_type_delay=60))


class QueueWorkersHarness:
    """The workers of one queue, with Leases taken at times."""

    def __init__(self) -> None:
        self.workers = QueueWorkers()

    def take(self, now: float, pod: str = "w", **said: Any) -> AffectedTypes:
        return self.workers.update(
            pod, worker_record(read_worker_lease(roll_lease(pod, int(now), **said))), now
        )

    def renew_until(self, pod: str, start: int, end: int, **said: Any) -> None:
        """Let a worker renew its Lease every 15 s."""
        for now in range(start, end + 1, 15):
            self.take(now, pod, **said)

    def since(self, job_type: str, now: float) -> float | None:
        missing = self.workers.unserved_type(job_type, now)
        return missing.since if missing else None


def test_a_missing_type_makes_a_dead_letter_after_the_delay_and_no_sooner() -> None:
    assert judged(waiting(), at(59)).requeue_at == 60
    assert moved(waiting(), at(59)) is None
    effect = judged(waiting(), at(60)).effect
    assert isinstance(effect, ChangePhase)
    assert (effect.change.target, effect.change.reason) == ("DeadLetter", "UnknownType")
    assert effect.precondition == TypeUnserved("ns", "default", "test")
    assert effect.change.fields["message"] == (
        "no live worker of queue default lists type test; 2 live workers list a, b"
    )


def test_the_delay_counts_from_when_the_job_could_be_claimed() -> None:
    assert moved(waiting(first=100), at(159)) is None
    assert moved(waiting(first=100), at(160)) == ("DeadLetter", "UnknownType")


@pytest.mark.parametrize(
    "snapshot",
    [
        waiting(queue=QueueView()),
        waiting(queue=replace(STRICT, paused=True)),
        waiting(missing=None),
        waiting(job(Phase.PENDING, reason="Suspended", spec={"suspend": True})),
        waiting(job(Phase.RETRYING, retryDelaySeconds=1e6)),
    ],
    ids=["a queue that lets it wait", "paused", "the type is listed", "gated", "backing off"],
)
def test_a_job_that_nobody_may_claim_or_that_may_wait_does(snapshot: Snapshot) -> None:
    assert moved(snapshot, at(1000)) is None


def test_a_job_that_has_run_before_is_given_up_as_well() -> None:
    snapshot = waiting(job(attempt=2, retries=1))
    assert moved(snapshot, at(60)) == ("DeadLetter", "UnknownType")


def test_the_message_names_few_of_many_types() -> None:
    many = UnservedType(0.0, 1, tuple("abcdefgh"))
    effect = judged(waiting(missing=many), at(60)).effect
    assert isinstance(effect, ChangePhase)
    assert "1 live worker lists a, b, c, d, e and 3 more" in str(effect.change.fields["message"])


@pytest.mark.parametrize(
    ("workers", "types", "words"),
    [
        (1, (), "; 1 live worker lists nothing"),
        (2, (), "; 2 live workers list nothing"),
        (2, ("a", "b", "c", "d", "e"), "; 2 live workers list a, b, c, d, e"),
        (1, ("a", "b", "c", "d", "e", "f"), "; 1 live worker lists a, b, c, d, e and 1 more"),
    ],
)
def test_the_message_says_what_the_workers_list(
    workers: int, types: tuple[str, ...], words: str
) -> None:
    effect = judged(waiting(missing=UnservedType(0.0, workers, types)), at(60)).effect
    assert isinstance(effect, ChangePhase)
    assert str(effect.change.fields["message"]).endswith(words)


def test_a_worker_counts_once_it_has_renewed_before_our_eyes_and_for_as_long_as_it_says() -> None:
    harness = QueueWorkersHarness()
    harness.take(0)
    assert harness.since("x", 1) is None
    assert harness.take(15)
    assert harness.since("x", 20) == 15
    assert harness.since("a", 20) is None
    assert harness.since("x", 15 + DURATION) == 15
    assert harness.since("x", 16 + DURATION) is None


def test_without_any_live_worker_nothing_is_missing_and_all_counting_begins_again() -> None:
    harness = QueueWorkersHarness()
    harness.renew_until("w", 0, 30)
    assert harness.take(200)
    assert harness.since("x", 201) == 200


@pytest.mark.parametrize("said", [{"draining": True}, {"worker": ""}])
def test_workers_that_claim_nothing_more_are_nobody_to_ask(said: dict[str, Any]) -> None:
    harness = QueueWorkersHarness()
    harness.renew_until("w", 0, 30)
    harness.take(31, **said)
    assert harness.since("x", 32) is None


@pytest.mark.parametrize("said", [{"draining": True}, {}])
def test_a_draining_or_silent_worker_still_vouches_for_its_types(said: dict[str, Any]) -> None:
    harness = QueueWorkersHarness()
    harness.take(0, "old", types=["x"], **said)
    harness.renew_until("new", 0, 300)
    assert harness.since("x", 300) is None


@pytest.mark.parametrize("goes", ["withdrawn", "removed", "changed"])
def test_a_type_is_missing_from_when_the_last_who_listed_it_is_gone(goes: str) -> None:
    harness = QueueWorkersHarness()
    harness.take(0, "old", types=["x"])
    harness.renew_until("new", 0, 90)
    how: dict[str, Callable[[], AffectedTypes]] = {
        "withdrawn": lambda: harness.take(95, "old", types=["x"], worker=""),
        "removed": lambda: harness.workers.remove("old", 95),
        "changed": lambda: harness.take(95, "old", types=["y"]),
    }
    assert "x" in how[goes]().types
    assert harness.since("x", 96) == 95
    assert harness.since("never", 96) == 15


def test_a_worker_that_does_not_say_what_it_knows_may_know_anything() -> None:
    harness = QueueWorkersHarness()
    harness.take(0, "mute", types=None)
    harness.renew_until("new", 0, 90)
    assert harness.since("x", 90) is None
    assert harness.workers.remove("mute", 91)
    assert harness.since("x", 92) == 91


def test_renewals_alone_bring_up_nothing() -> None:
    harness = QueueWorkersHarness()
    harness.renew_until("w", 0, 15)
    assert not harness.take(30)
    assert harness.workers.remove("w", 31)


def test_a_worker_that_moves_to_another_queue_lists_nothing_in_the_old() -> None:
    changed: list[tuple[str, AffectedTypes]] = []

    def take(queue: tuple[str, str], who: AffectedTypes) -> None:
        changed.append((queue[1], who))

    calls = WorkerRegistry(lambda: 0.0, lambda _: None)
    calls.add_listener(take)
    calls.on_lease_update(roll_lease("one", 0, types=["x"]))
    calls.on_lease_update(roll_lease("two", 0))
    calls.on_lease_update(roll_lease("two", 1))
    assert calls.unserved_type(job(spec={"type": "x"})) is None
    calls.on_lease_update(roll_lease("one", 1, types=["x"], queue="other"))
    assert calls.unserved_type(job(spec={"type": "x"}))
    everybody = AffectedTypes(every=True)
    assert changed == [
        ("default", everybody),
        ("default", AffectedTypes(frozenset("a"))),
        ("default", everybody),
        ("default", AffectedTypes(frozenset("x"))),
        ("other", everybody),
    ]
    for pod in ("one", "two"):
        calls.on_lease_delete("ns", f"asyncjob-worker-{pod}")
    assert calls.unserved_type(job(spec={"type": "x"})) is None


@pytest.mark.parametrize(("spec", "strict"), [({}, False), ({"unknownType": "DeadLetter"}, True)])
def test_a_queue_lets_unknown_types_wait_unless_it_says_otherwise(
    spec: dict[str, Any], strict: bool
) -> None:
    assert read_queue({"spec": spec}).dead_letters_unknown_types is strict


def test_who_is_asked_in_vain_is_counted_and_named_by_what_they_list() -> None:
    harness = QueueWorkersHarness()
    harness.renew_until("one", 0, 30, types=["b", "a"])
    harness.renew_until("two", 0, 30, types=["c"])
    harness.take(20, "silent", types=["d"])
    for now in (31, 30 + DURATION):
        missing = harness.workers.unserved_type("x", now)
        assert missing == UnservedType(since=15, live_workers=2, listed_types=("a", "b", "c"))


def test_a_renewal_concerns_no_type_and_what_nobody_lists_is_not_remembered() -> None:
    harness = QueueWorkersHarness()
    assert harness.take(0, types=["a", "b"]) == ALL_TYPES
    assert harness.take(15, types=["a", "b"]) == ALL_TYPES, "it is live from now on"
    assert harness.take(30, types=["a", "b"]) == NO_TYPES
    assert harness.take(45, types=["b", "c"]) == AffectedTypes(frozenset("ac"))
    assert set(harness.workers._type_counts) == {"b", "c"}
    assert harness.workers.remove("w", 60) == ALL_TYPES
    assert not harness.workers._type_counts


def test_a_worker_whose_lease_is_gone_is_nobody_to_ask() -> None:
    harness = QueueWorkersHarness()
    harness.renew_until("one", 0, 30)
    harness.renew_until("two", 0, 30)
    harness.workers.remove("one", 31)
    missing = harness.workers.unserved_type("x", 32)
    assert missing
    assert missing.live_workers == 1
    harness.workers.remove("two", 33)
    assert harness.workers.unserved_type("x", 34) is None


def test_where_too_many_types_are_no_longer_listed_all_count_as_lost() -> None:
    harness, many = QueueWorkersHarness(), [f"t{number}" for number in range(MAX_REMEMBERED)]
    harness.renew_until("w", 0, 30)
    harness.take(40, "other", types=[*many, "x"])
    harness.take(50, "other", types=["x"])
    assert [harness.since(name, 60) for name in ("t0", "never")] == [50, 15]
    harness.take(60, "other", types=[])
    assert [harness.since(name, 70) for name in ("t0", "never", "x")] == [60, 60, 60]
    assert set(harness.workers._type_lost_at) == {"x"}


def test_a_lease_that_does_not_say_how_long_it_lasts_makes_nobody_live() -> None:
    record = worker_record(read_worker_lease(roll_lease()))
    assert record.duration == DURATION
    assert worker_record(read_worker_lease({})).duration == 0
