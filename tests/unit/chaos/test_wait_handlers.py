"""What the load of waits submits, and what its handlers leave in the trace."""

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import pytest

from asyncjob import ArraySubmission, Submission
from asyncjob.testing import ArrayPhase, FakeCluster, Phase
from asyncjob_chaos import orders
from asyncjob_chaos.handlers import TRACE_VARIABLE
from asyncjob_chaos.judging.trace import HandlerTrace
from asyncjob_chaos.wait_handlers import ANSWERED, ITEM, PARENT, SIGNAL, STEPS, app

KINDS = 9


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "trace.jsonl"
    monkeypatch.setenv(TRACE_VARIABLE, str(file))
    return file


def read(trace: Path) -> HandlerTrace:
    return HandlerTrace.of(map(orjson.loads, trace.read_bytes().splitlines()))


def order_of(type_: str, **payload: Any) -> orders.Order:
    """Return the first order of a type whose payload has these fields."""
    found = (
        one
        for one in map(orders.waits, range(2 * KINDS))
        if one.fields["type"] == type_ and one.fields["payload"].items() >= payload.items()
    )
    return next(found)


def test_each_kind_comes_in_turn_by_both_clients_and_is_valid() -> None:
    clients: Counter[tuple[int, int]] = Counter()
    for number in range(4 * KINDS):
        order = orders.waits(number)
        (ArraySubmission if order.is_array else Submission)(name=f"a-{number}", **order.fields)
        clients[number % KINDS, number % 2] += 1
    assert set(clients.values()) == {2}
    types = {orders.waits(number).fields["type"] for number in range(KINDS)}
    assert types == {STEPS, ANSWERED, PARENT, ITEM, "chaos.plain"}


def test_the_job_of_a_signal_and_the_signal_come_by_every_pair_of_clients() -> None:
    numbers = (one for one in range(100) if orders.waits(one).signal)
    assert len({(one % 2, one // 2 % 2) for one in islice(numbers, 12)}) == 4


@pytest.mark.parametrize(("steps", "fails"), [(2, False), (3, True)])
async def test_steps_are_taken_once_each_with_a_park_between(
    trace: Path, steps: int, fails: bool
) -> None:
    payload = order_of(STEPS, steps=steps).fields["payload"]
    assert bool(payload.get("fails")) is fails
    async with FakeCluster(app) as cluster:
        job = await cluster.submit(STEPS, payload)
        await cluster.run_until_idle()
    assert job.phase is Phase.SUCCEEDED
    found = read(trace)
    assert len(found.waits.taken) == steps
    assert found.waits.steps_begun_again == found.repeated == 0
    assert len(found.stretches) == steps
    assert found.failures.total() == fails
    assert found.effects.total() == 1
    assert {len(tokens) for tokens in found.waits.kept.values()} == {1}


async def test_what_a_signal_says_is_received(trace: Path) -> None:
    payload = order_of(ANSWERED, limit=orders.PATIENT_SECONDS).fields["payload"]
    async with FakeCluster(app) as cluster:
        job = await cluster.submit(ANSWERED, payload)
        await cluster.run_until(lambda: bool(job.status.waiting))
        await job.signal(SIGNAL, 41)
        await cluster.run_until_idle()
    found = read(trace)
    assert found.waits.received == {job.name: {41}}
    assert not found.waits.late
    assert found.effects.total() == 1


async def test_a_signal_that_does_not_come_is_late(trace: Path) -> None:
    async with FakeCluster(app) as cluster:
        job = await cluster.submit(ANSWERED, order_of(ANSWERED, limit=5).fields["payload"])
        await cluster.run_until_idle()
    assert job.phase is Phase.SUCCEEDED
    assert read(trace).waits.late == {job.name}


async def test_a_parent_is_parked_until_both_children_have_ended(trace: Path) -> None:
    async with FakeCluster(app) as cluster:
        job = await cluster.submit(PARENT, {"seconds": orders.SLEEP_SECONDS})
        await cluster.run_until_idle()
        children = {one.name for one in cluster.jobs} - {job.name}
    found = read(trace)
    at, names = found.waits.gathered[job.name]
    assert names == children
    assert len(names) == 2
    assert all(found.first_effect[name] < at for name in names)
    assert (job.name, 1) in found.stretches


async def test_each_item_leaves_a_line_though_its_first_try_fails(trace: Path) -> None:
    payload = {"seconds": 0.1, "fails": 2}
    async with FakeCluster(app) as cluster:
        array = await cluster.submit_array(ITEM, 6, payload=payload, chunk_size=3, name="numbers")
        await cluster.run_until_idle()
    assert (array.phase, array.succeeded) == (ArrayPhase.SUCCEEDED, 6)
    items = read(trace).waits.items
    assert sorted((run.array, run.item) for run in items) == [("numbers", n) for n in range(6)]
    assert len({run.chunk for run in items}) == 2
    assert set(items.values()) == {1}
