"""Whose turn it is among those that something is due for, or that are to be looked at."""

import asyncio
from typing import Any, cast

from asyncjob_operator.components import Components
from asyncjob_operator.controllers.workqueue import DelayingQueue, WorkQueue
from asyncjob_operator.kube.leader_election import AlwaysLeader
from asyncjob_operator.kube.version_times import VersionTimes
from asyncjob_operator.settings import Settings
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from support.in_memory.fake_session import FakeSession
from support.objects.schedules import raw_cron


async def order(queue: WorkQueue) -> list[str]:
    return [await queue.get() for _ in range(len(queue))]


async def test_a_thousand_of_one_lane_hold_up_the_first_of_another_by_one_turn() -> None:
    queue = WorkQueue()
    for number in range(1000):
        queue.add(f"d{number}", "ns/duplicate")
    queue.add("honest", "ns/admit")
    queue.add("neighbour", "other/duplicate")
    assert [await queue.get() for _ in range(4)] == ["d0", "honest", "neighbour", "d1"]
    assert len(queue) == 998


async def test_of_one_lane_only_so_many_are_worked_on_at_once() -> None:
    queue = WorkQueue(max_per_lane=2)
    for number in range(5):
        queue.add(f"d{number}", "many")
    assert [await queue.get(), await queue.get()] == ["d0", "d1"]
    third = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.add("honest", "few")
    assert await third == "honest"
    fourth = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    assert not fourth.done()
    queue.done("d0")
    assert await fourth == "d2"


async def test_within_a_lane_who_came_first_is_first_and_each_is_there_once() -> None:
    queue = WorkQueue()
    for key in "abab":
        queue.add(key, "lane")
    queue.add("a", "another")
    queue.discard("b")
    queue.discard("b")
    queue.add("c", "lane")
    assert await order(queue) == ["a", "c"]


async def test_who_is_put_back_keeps_the_lane() -> None:
    queue = WorkQueue()
    queue.add("a", "one")
    queue.add("b", "one")
    queue.add("c", "two")
    assert await queue.get() == "a"
    queue.requeue("a")
    assert await order(queue) == ["c", "b", "a"]


async def test_what_is_added_meanwhile_is_on_the_list_again_if_it_is_to_be_remembered() -> None:
    queue = WorkQueue(requeue_dirty=True)
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await order(queue) == ["a"]


async def test_what_is_due_comes_before_what_was_added_in_bulk() -> None:
    delays = DelayingQueue()
    delays.add_all(["c", "a", "b"])
    delays.add_all(["a"])
    delays.requeue_at("late", 1.0)
    assert delays.pop_due(2.0, 2) == ["late", "c"]
    assert delays.pop_due(2.0, 5) == ["a", "b"]
    assert delays.pop_due(2.0, 5) == []


async def test_bulk_wakes_the_sleeper_and_does_not_unblock_who_is_left_alone() -> None:
    delays = DelayingQueue()
    delays.block_until("a", 100.0)
    asyncio.get_running_loop().call_soon(delays.add_all, ["a", "b"])
    await asyncio.wait_for(delays.wait(0.0, 30.0), 5)
    assert delays.pop_due(1.0, 5) == ["a", "b"]
    assert delays.is_blocked("a", 1.0)
    delays.add_all(["b"])
    delays.forget("b")
    assert delays.pop_due(1.0, 5) == []


def test_a_deadline_is_brought_forward_and_never_put_off() -> None:
    delays = DelayingQueue()
    delays.advance("a", 5.0)
    delays.advance("a", 9.0)
    assert delays.pop_due(5.0, 1) == ["a"]


def components() -> Components:
    session: Any = FakeSession()
    session.server_time = lambda: None
    settings = Settings(identity="me")
    return Components(
        settings, session, cast("Any", AlwaysLeader()), VersionTimes(), OperatorMetrics()
    )


def schedule(number: int, namespace: str) -> dict[str, Any]:
    obj = raw_cron(f"s{number}", suspend=True, trigger=1)
    obj["metadata"] |= {"namespace": namespace, "uid": f"{namespace}-{number}"}
    return obj


async def test_a_hundred_due_schedules_hold_up_that_of_another_namespace_by_one_turn() -> None:
    parts = components()
    for number in range(100):
        parts.cron_job_evaluator.on_update(schedule(number, "many"))
    parts.cron_job_evaluator.on_update(schedule(0, "few"))
    queue = parts.cron_job_reconcilers._queue
    assert [await queue.get() for _ in range(2)] == ["many-0", "few-0"]


async def test_a_hundred_queues_with_limits_hold_up_that_of_another_namespace_by_one_turn() -> None:
    parts = components()
    queues = parts.caches.queues
    for namespace, count in (("many", 100), ("few", 1)):
        for number in range(count):
            meta = {"namespace": namespace, "name": f"q{number}", "resourceVersion": "1"}
            queues.on_update({"metadata": meta, "spec": {"maxConcurrency": 1}})
    queue = parts.admission_reconcilers._queue
    assert [await queue.get() for _ in range(2)] == ["many/q0", "few/q0"]
