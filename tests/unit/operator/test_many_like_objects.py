"""What one event costs beside many objects of its like: no more than beside few.

Counted in calls, not in seconds. What many others hear of is put on a list as a whole, and worked
off bit by bit.
"""

from collections.abc import Callable
from typing import Any

import pytest

from asyncjob_operator.controllers.cron_job_evaluator import CronJobEvaluator
from asyncjob_operator.controllers.workqueue import DelayingQueue
from asyncjob_operator.core.admission.pending_queue import PendingJob, PendingQueue
from asyncjob_operator.core.decision import RedriveRefusal
from support.judging.calls import calls_of
from support.objects.schedules import raw_cron, settled
from support.objects.snapshots import roll_lease, running, stamp
from support.parts.audience import Audience
from support.parts.vitals import quarantine

FEW, MANY = 100, 1000
CRON = "uid-nightly"
ONE = {"deduplicationId": "one"}
LIMITED: dict[str, Any] = {"maxConcurrency": 1, "maxConcurrencyPerKey": 1}


def duplicates(count: int) -> Audience:
    audience = Audience()
    for number in range(count):
        audience.see(f"j{number:05}", spec=ONE)
    audience.catch_up()
    return audience


def another_comes(count: int) -> Callable[[], object]:
    audience = duplicates(count)
    return lambda: audience.see("k", spec=ONE)


def one_is_cancelled(count: int) -> Callable[[], object]:
    audience = duplicates(count)
    end = {"phase": "Cancelled", "completionTime": stamp(0), "spec": ONE}
    return lambda: audience.see("j00100", **end)


def the_holder_ends(count: int) -> Callable[[], object]:
    audience = duplicates(count)
    end = {"phase": "Cancelled", "completionTime": stamp(0), "spec": ONE}
    return lambda: audience.see("j00000", **end)


def the_last_has_begun(count: int) -> Callable[[], object]:
    audience = duplicates(count)
    return lambda: audience.see("j00100", admitted=True, spec=ONE)


def the_id_is_free_again(count: int) -> Callable[[], object]:
    audience = Audience()
    audience.see("holder", admitted=True, spec=ONE)
    dead = {"phase": "DeadLetter", "completionTime": stamp(0), "spec": {**ONE, "redrive": 1}}
    for number in range(count):
        audience.observer.record_refusal(
            audience.see(f"j{number}", **dead), 1, RedriveRefusal.DUPLICATE
        )
    return lambda: audience.see("holder", phase="Succeeded", completionTime=stamp(1), spec=ONE)


def family(children: int, followers: int) -> Audience:
    audience = Audience()
    audience.see("parent", phase="Succeeded", completionTime=stamp(0))
    for number in range(children):
        audience.see(f"c{number}", parent="uid-parent")
    for number in range(followers):
        audience.see(f"f{number}", spec={"dependsOn": [{"name": "parent", "children": True}]})
    audience.catch_up()
    return audience


def a_child_ends(count: int) -> Callable[[], object]:
    audience = family(count, count)
    end = {"phase": "Succeeded", "completionTime": stamp(0), "parent": "uid-parent"}
    return lambda: audience.see("c3", **end)


def a_second_child_fails(count: int) -> Callable[[], object]:
    audience = family(count, count)
    end = {"phase": "DeadLetter", "completionTime": stamp(0), "parent": "uid-parent"}
    audience.see("c2", **end)
    audience.catch_up()
    return lambda: audience.see("c3", **end)


def a_parent_is_open_again(count: int) -> Callable[[], object]:
    audience = family(count, count)
    return lambda: audience.see("parent", redrives=1)


def a_dependency_ends(count: int) -> Callable[[], object]:
    audience = Audience()
    audience.see("first")
    for number in range(count):
        audience.see(f"f{number}", spec={"dependsOn": [{"name": "first"}]})
    return lambda: audience.see("first", phase="Succeeded", completionTime=stamp(0))


def a_run_of_a_schedule_ends(count: int) -> Callable[[], object]:
    audience = Audience()
    schedules = CronJobEvaluator(
        "me",
        audience.caches.scheduled_jobs,
        audience.moment,
        lambda _: None,
        delaying_queue=DelayingQueue(),
        quarantine=quarantine(),
    )
    schedules.on_update(raw_cron(status=settled("2026-11-20T02:00"), suspend=True))
    for number in range(count + 200):
        audience.see(f"r{number}", cron=CRON)
    end = {"phase": "Succeeded", "completionTime": stamp(0), "cron": CRON}
    return lambda: audience.see("r3", **end)


def a_queue_is_paused(count: int) -> Callable[[], object]:
    audience = Audience()
    audience.queue(**LIMITED)
    for number in range(count):
        audience.see(f"j{number}", spec={"concurrencyKey": f"k{number}"})
    return lambda: audience.queue(**LIMITED, paused=True)


def a_pod_ends(count: int) -> Callable[[], object]:
    audience = Audience()
    for number in range(count):
        audience.see(f"j{number}", phase="Running", **running())
    return lambda: audience.caches.worker_pods._on_change("ns", "pod-uid")


def a_worker_renews(count: int) -> Callable[[], object]:
    audience = Audience()
    for number in range(count):
        audience.caches.worker_registry.on_lease_update(
            roll_lease(f"w{number}", 0, types=[f"t{number}"])
        )
    return lambda: audience.caches.worker_registry.on_lease_update(
        roll_lease("w1", 15, types=["t1"])
    )


def an_unknown_type_is_known(count: int) -> Callable[[], object]:
    audience = Audience()
    audience.queue(**LIMITED)
    audience.caches.worker_registry.on_lease_update(roll_lease("w", 0, types=["a"]))
    for number in range(count):
        audience.see(f"j{number}", spec={"type": "b"})
    return lambda: audience.caches.worker_registry.on_lease_update(roll_lease("v", 0, types=["b"]))


def a_place_is_given(count: int) -> Callable[[], object]:
    line = PendingQueue()
    for number in range(count):
        line.add(PendingJob(f"u{number}", f"j{number}", "", f"k{number}", 0, number))
    return lambda: line.pop(1, lambda _: True)


def a_place_is_given_with_ageing(count: int) -> Callable[[], object]:
    line = PendingQueue(ageing_seconds=5)
    for number in range(count):
        line.add(PendingJob(f"u{number}", f"j{number}", "", f"k{number}", 0, number))
    return lambda: line.pop(1, lambda _: True)


@pytest.mark.parametrize(
    "event",
    [
        another_comes,
        one_is_cancelled,
        the_holder_ends,
        the_last_has_begun,
        the_id_is_free_again,
        a_child_ends,
        a_second_child_fails,
        a_parent_is_open_again,
        a_dependency_ends,
        a_run_of_a_schedule_ends,
        a_queue_is_paused,
        a_pod_ends,
        a_worker_renews,
        an_unknown_type_is_known,
        a_place_is_given,
        a_place_is_given_with_ageing,
    ],
    ids=lambda event: event.__name__,
)
def test_an_event_costs_beside_many_of_its_like_what_it_costs_beside_few(
    event: Callable[[int], Callable[[], object]],
) -> None:
    few, many = calls_of(event(FEW)), calls_of(event(MANY))
    assert many <= 1.1 * few + 10


def test_of_many_duplicates_all_but_the_first_are_to_be_cancelled_in_a_lane_of_their_own() -> None:
    audience = duplicates(MANY)
    assert len(audience.wanted) == MANY - 1
    assert set(audience.wanted.values()) == {"ns/duplicate"}
    for number in range(1, MANY):
        end = {"phase": "Cancelled", "completionTime": stamp(0), "spec": ONE}
        audience.see(f"j{number:05}", **end)
    assert audience.wanted == {"uid-j00000": "ns/admit"}


def test_the_next_of_the_duplicates_is_let_through_when_the_holder_has_gone() -> None:
    audience = Audience()
    for name in "abc":
        audience.see(name, spec=ONE)
    assert set(audience.wanted) == {"uid-b", "uid-c"}
    audience.observer.on_delete("uid-a")
    assert set(audience.wanted) == {"uid-c"}
    audience.see("c", phase="Cancelled", completionTime=stamp(0), spec=ONE)
    assert audience.wanted == {"uid-b": "ns/admit"}


def test_a_duplicate_that_is_being_deleted_is_in_nobodys_way() -> None:
    audience = Audience()
    audience.see("a", spec=ONE)
    audience.see("b", spec=ONE)
    audience.see("a", spec=ONE, deleting=True)
    audience.requeue("uid-b")
    assert audience.wanted == {"uid-a": "ns/deletion", "uid-b": "ns/admit"}
