"""What tells waits for children apart, and the form in which their ends cross processes."""

import asyncio
import concurrent.futures
from collections.abc import Sequence

import pytest

from asyncjob.app.child_jobs import (
    ChildEnd,
    ChildRef,
    ChildView,
    HeldChildWaits,
    NoChildJobs,
    end_to_json,
    read_end,
)
from asyncjob.app.child_waits import ChildrenAnswer, ParkingChildWaits
from asyncjob.app.errors import ChildGoneError
from asyncjob.app.park_gate import ParkGate
from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.step_records import MAX_STEP_KEY_LENGTH
from asyncjob.lifecycle.waits import WaitKind, shown_key, shown_name

A, B, C = (ChildRef(name, f"uid-{name}") for name in "abc")


class Store:
    """Answers at once that all have ended; keeps the keys."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def children(
        self, key: str, children: Sequence[ChildRef], seconds: float | None
    ) -> "concurrent.futures.Future[JsonObject]":
        assert seconds is None or seconds > 2
        self.keys.append(key)
        answer: concurrent.futures.Future[JsonObject] = concurrent.futures.Future()
        answer.set_result(ChildrenAnswer([view(ref) for ref in children]).to_json())
        return answer

    def give_up(self, key: str) -> "concurrent.futures.Future[None]":
        raise AssertionError(key)


def view(ref: ChildRef, result: object = None) -> ChildView:
    return ChildView(ref.name, ref.uid, "pack", Phase.SUCCEEDED, "", "", 1, result)  # type: ignore[arg-type]


async def keys(*waits: tuple[Sequence[ChildRef], float | None]) -> list[str]:
    store = Store()
    asking = ParkingChildWaits(store, ParkGate(), lambda _: True, HeldChildWaits(NoChildJobs()))
    for refs, seconds in waits:
        await asking.children(refs, seconds)
    return store.keys


async def test_waits_for_different_children_have_different_keys() -> None:
    found = await keys(([A, B], None), ([A, C], None), ([A], None), ([A, B], 60), ([A, C], 60))
    assert len(set(found)) == 5
    assert [key.split(" (")[0] for key in found[:3]] == [
        "children a and 1 more",
        "children a and 1 more",
        "child a",
    ]


async def test_people_read_no_digest() -> None:
    found = await keys(([A, B], None), ([A], None), ([A, B], 60), ([A, B], 60), ([A], 60))
    both, one = "children a and 1 more", "child a"
    assert [shown_key(key) for key in found] == [both, one, both, both, one]
    assert shown_name(WaitKind.CHILDREN, found[0]) == both
    assert shown_name(WaitKind.SIGNAL, "go (0123abcd)") == "Signal go (0123abcd)"


async def test_each_attempt_calls_a_wait_the_same_and_each_limit_is_one_of_its_own() -> None:
    waits = [([A, B], 60.0), ([A, C], 60.0), ([A, B], 60.0), ([A, B], None)]
    first, again = await keys(*waits), await keys(waits[1], waits[0], *waits[2:])
    assert sorted(first) == sorted(again)
    assert len(set(first)) == 4


async def test_a_child_of_the_same_name_that_was_created_later_has_a_limit_of_its_own() -> None:
    first, later = await keys(([A], 60.0), ([ChildRef("a", "uid-later")], 60.0))
    assert first != later


async def test_children_whose_names_end_alike_have_keys_of_their_own() -> None:
    """Else the wait for one would take the place of that for the other as the job is parked."""
    long = [ChildRef(start + "x" * 200, f"uid-{start}") for start in "ab"]
    found = await keys(*[([ref], None) for ref in long])
    assert len(set(found)) == 2
    assert await keys(([long[0]], None)) == found[:1]


async def test_keys_are_never_too_long() -> None:
    refs = [ChildRef("x" * 253, f"uid-{number}") for number in range(9_999)]
    found = await keys(*[(refs, 60.0)] * 3, (refs, None), (refs[:1], None))
    assert max(map(len, found)) <= MAX_STEP_KEY_LENGTH


@pytest.mark.parametrize("end", [view(A, {"rows": [1, 2]}), ChildGoneError("child a is gone")])
def test_an_end_crosses_and_a_large_result_is_not_copied(end: ChildEnd) -> None:
    crossed = read_end(end_to_json(end))
    if isinstance(end, ChildView):
        assert crossed == end
        assert isinstance(crossed, ChildView)
        assert crossed.result is end.result
    else:
        assert str(crossed) == str(end)


async def test_nothing_to_wait_for_and_short_limits_never_park() -> None:
    store = Store()
    held = HeldChildWaits(NoChildJobs())
    asking = ParkingChildWaits(store, ParkGate(), lambda _: True, held)
    assert await asyncio.wait_for(asking.children([], None), 5) == []
    assert store.keys == []
