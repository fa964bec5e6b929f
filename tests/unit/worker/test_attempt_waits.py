"""What the waits of an attempt leave for a park, and what becomes of signals nearly late."""

import asyncio
import concurrent.futures
from collections.abc import Callable, Collection
from typing import Any, cast

import pytest
import structlog

from asyncjob.app.child_jobs import ChildRef, ChildView, NoChildJobs
from asyncjob.app.context import Stop
from asyncjob.app.errors import AttemptOverError, ChildGoneError, StepRefusedError
from asyncjob.errors import InvalidError, TooLargeError, UnknownOutcomeError
from asyncjob.json_types import JsonObject, as_object
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.waits import WaitedChild, WaitKind, first_waits
from asyncjob_worker.execution.attempt_waits import AttemptWaits, WaitServices
from asyncjob_worker.leases.step_writer import StepWriter
from support.parts.worker_parts import held

NOW = 1_800_000_000.0
APPROVAL: JsonObject = {"payload": True, "sentBy": "ada", "sentAt": "2027-01-15T08:00:00Z"}
REFUSED = InvalidError("signal.in-time", status=422, reason="Invalid")
AWAY = UnknownOutcomeError("no answer")


class Writer:
    """Takes what is written; `answers` are raised one after the other, None is success."""

    def __init__(self) -> None:
        self.written: list[tuple[str, JsonObject, bool]] = []
        self.answers: list[Exception | None] = []
        self.on_refusal: Callable[[], object] = lambda: None
        self.before_answer = asyncio.Event()
        self.before_answer.set()

    async def write(self, _: Any, key: str, record: JsonObject, *, first: bool, field: str) -> None:
        assert field == "waits"
        await self.before_answer.wait()
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            self.on_refusal()
            raise answer
        self.written.append((key, record, first))


class Children(NoChildJobs):
    """Children that end when a test says so."""

    def __init__(self) -> None:
        self.futures: dict[str, concurrent.futures.Future[ChildView]] = {}
        self.lists: list[Exception] = []
        self.listed = 0
        self.answers_after = 0.0
        self.asked: list[str] = []
        self.hidden: set[str] = set()
        """UIDs of those that a list says are over, though their end is not read yet."""

    def wait(
        self, child: ChildRef, timeout: float | None
    ) -> "concurrent.futures.Future[ChildView]":
        assert timeout is None
        self.asked.append(child.name)
        known = self.futures.get(child.uid)
        if known is None or known.cancelled():
            known = self.futures[child.uid] = concurrent.futures.Future()
        return known

    async def unfinished(self) -> frozenset[str]:
        self.listed += 1
        if self.lists:
            raise self.lists.pop(0)
        await asyncio.sleep(self.answers_after)
        open_ones = {uid for uid, one in self.futures.items() if not one.done()}
        return frozenset(open_ones - self.hidden)

    def end(self, ref: ChildRef, phase: Phase = Phase.SUCCEEDED) -> None:
        self.wait(ref, None).set_result(view(ref, phase))


def view(ref: ChildRef, phase: Phase = Phase.SUCCEEDED) -> ChildView:
    return ChildView(ref.name, ref.uid, "pack", phase, "", "", 1)


A, B, C = (ChildRef(name, f"uid-{name}") for name in "abc")


class WaitHarness:
    """The waits of one held job, with a clock that each pause moves on."""

    def __init__(self, *, may_park: Collection[WaitKind] = frozenset(WaitKind)) -> None:
        self.now = NOW
        self.writer = Writer()
        self.reads: list[JsonObject | Exception] = []
        self.signals: JsonObject = {}
        self.held = held()
        self.may_park = may_park
        self.readable = asyncio.Event()
        self.readable.set()
        self.children = Children()
        services = WaitServices(
            writer=cast("StepWriter", self.writer),
            may_park=self._may_park,
            server_time=lambda: self.now,
            read_object=self._read,
            pause=self._pause,
            grace=0.05,
            look_seconds=0.1,
        )
        self.waits = AttemptWaits(services, self.held, asyncio.Lock(), self.children)

    async def _may_park(self, kinds: Collection[WaitKind]) -> bool:
        return set(kinds) <= set(self.may_park)

    async def _read(self, _: str) -> JsonObject:
        await self.readable.wait()
        answer = self.reads.pop(0) if self.reads else self.signals
        if isinstance(answer, Exception):
            raise answer
        return {"metadata": {"uid": self.held.job.uid}, "spec": {"signals": answer}}

    async def _pause(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


@pytest.mark.parametrize("sleeps_first", [True, False])
async def test_a_signal_and_a_sleep_that_begin_together_are_both_waited_for(
    sleeps_first: bool,
) -> None:
    harness = WaitHarness()
    waits = harness.waits
    both = [lambda: waits.sleep("remind", 86_400.0), lambda: waits.signal("approval", None)]
    first, second = both if sleeps_first else reversed(both)
    await first()
    pending = asyncio.ensure_future(second())
    await asyncio.sleep(0)  # the handler is ended by the first as soon as that parks
    assert set(waits.open) == {"remind", "approval"}
    pending.cancel()


async def test_a_leader_that_knows_sleeps_only_parks_no_signal() -> None:
    harness = WaitHarness(may_park={WaitKind.SLEEP})
    assert await harness.waits.sleep("remind", 86_400.0) > 0
    assert set(harness.waits.open) == {"remind"}


async def test_a_signal_that_came_while_its_end_was_marked_is_there_though_a_read_fails() -> None:
    harness = WaitHarness(may_park=())
    harness.writer.answers = [None, REFUSED]

    def sent() -> None:
        harness.signals = {"approval": APPROVAL}
        harness.reads = [AWAY, AWAY]

    harness.writer.on_refusal = sent
    answer = await harness.waits.signal("approval", 3.0)
    assert answer.signal == APPROVAL
    assert not answer.timed_out


@pytest.mark.parametrize("refusal", [REFUSED, TooLargeError("413")])
async def test_a_wait_whose_end_cannot_be_kept_ends_neither_way(refusal: Exception) -> None:
    harness = WaitHarness(may_park=())
    harness.writer.answers = [None, refusal]
    with pytest.raises(StepRefusedError, match="the end of the wait for signal 'approval'"):
        await harness.waits.signal("approval", 3.0)


async def test_a_mark_that_lands_while_the_handler_ends_is_part_of_what_it_leaves() -> None:
    harness = WaitHarness(may_park=())
    waiting = asyncio.ensure_future(harness.waits.signal("approval", 0.0))
    harness.writer.before_answer.clear()
    for _ in range(20):
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0)
    harness.writer.before_answer.set()
    await harness.waits.settle(5.0)
    assert [(key, record.get("over")) for key, record, _ in harness.writer.written] == [
        ("approval", True)
    ]
    record = cast("JsonObject", harness.waits.records["approval"])
    assert record["over"] is True


async def test_a_first_write_that_was_refused_is_still_the_first_when_it_is_tried_again() -> None:
    harness = WaitHarness(may_park=())
    harness.writer.answers = [REFUSED]
    answer = await harness.waits.signal("approval", 5.0)
    assert answer.timed_out
    assert [first for _, _, first in harness.writer.written] == [True, False]


async def test_the_end_of_a_wait_is_kept_once_the_body_of_a_step_holds_up_the_park() -> None:
    harness = WaitHarness()
    for expected in (0, 1, 1):
        assert await harness.waits.sleep("remind", 86_400.0) > 0
        assert len(harness.writer.written) == expected


async def test_a_signal_that_is_nested_too_deep_is_refused_as_it_is_found() -> None:
    harness = WaitHarness()
    payload: Any = "deep"
    for _ in range(300):
        payload = [payload]
    harness.signals = {"approval": {**APPROVAL, "payload": payload}}
    found = (await harness.waits.signal("approval", None)).signal
    assert found is not None
    assert "payload" not in found
    assert "nested deeper than" in str(found["payloadRefused"])


async def test_children_that_end_soon_keep_the_slot() -> None:
    harness = WaitHarness()
    pending = asyncio.ensure_future(harness.waits.children("children a and 1 more", [A, B], None))
    await asyncio.sleep(0)
    harness.children.end(B, Phase.DEAD_LETTER)
    harness.children.end(A)
    answer = await pending
    assert answer.ends == [view(A), view(B, Phase.DEAD_LETTER)]
    assert harness.waits.open == {}
    assert harness.writer.written == []


async def test_a_job_is_parked_for_the_children_that_are_unfinished() -> None:
    harness = WaitHarness()
    pending = asyncio.ensure_future(
        harness.waits.children("children a and 2 more", [A, B, C], None)
    )
    await asyncio.sleep(0)
    harness.children.end(B)
    answer = await pending
    assert not answer.is_over
    (waiting,) = first_waits(harness.waits.open)
    assert waiting.children == (WaitedChild("a", "uid-a"), WaitedChild("c", "uid-c"))
    assert (waiting.kind, waiting.until) == (WaitKind.CHILDREN, "")
    assert harness.waits.records == {}


async def test_children_whose_end_is_still_to_be_read_park_nothing() -> None:
    harness = WaitHarness()
    harness.children.hidden = {A.uid}
    pending = asyncio.ensure_future(harness.waits.children("child a", [A], None))
    await asyncio.sleep(0.2)
    assert harness.children.listed
    assert not pending.done()
    harness.children.end(A)
    assert (await pending).ends == [view(A)]


async def test_a_list_that_fails_parks_nothing_before_one_succeeds() -> None:
    harness = WaitHarness()
    harness.children.lists = [AWAY]
    assert not (await harness.waits.children("child a", [A], None)).is_over
    assert harness.children.listed == 2


async def test_a_leader_that_does_not_wake_from_children_leaves_them_the_slot() -> None:
    harness = WaitHarness(may_park={WaitKind.SLEEP, WaitKind.SIGNAL})
    pending = asyncio.ensure_future(harness.waits.children("child a", [A], None))
    await asyncio.sleep(0.2)
    assert not pending.done()
    assert harness.children.listed == 0
    harness.children.end(A)
    assert (await pending).ends == [view(A)]


async def test_a_deleted_child_is_over() -> None:
    harness = WaitHarness()
    gone = ChildGoneError("child a has been deleted")
    harness.children.wait(A, None).set_exception(gone)
    assert (await harness.waits.children("child a", [A], None)).ends == [gone]


async def test_a_child_that_cannot_be_looked_at_fails_the_wait() -> None:
    harness = WaitHarness()
    harness.children.wait(A, None).set_exception(InvalidError("no", status=422, reason="Invalid"))
    with pytest.raises(InvalidError):
        await harness.waits.children("child a", [A], None)


async def test_a_signal_beside_children_parks_once_it_is_known_which_are_unfinished() -> None:
    """Else a park that names children that are over would be woken at once, again and again."""
    harness = WaitHarness()
    harness.children.hidden = {A.uid}
    children = asyncio.ensure_future(harness.waits.children("child a", [A], None))
    await asyncio.sleep(0)
    signal = asyncio.ensure_future(harness.waits.signal("approval", None))
    await asyncio.sleep(0.1)
    assert not signal.done()
    harness.children.end(A)
    assert (await children).ends == [view(A)]
    assert not (await signal).is_over
    assert set(harness.waits.open) == {"approval"}


async def test_the_limit_of_a_wait_for_children_is_kept_and_marked() -> None:
    harness = WaitHarness()
    answer = await harness.waits.children("child a (timed)", [A], 60.0)
    assert answer.left == pytest.approx(61, abs=2)
    record = harness.waits.records["child a (timed)"]
    assert record == {"kind": "Children", "until": "2027-01-15T08:01:01.000Z"}
    harness.now += 62
    await asyncio.sleep(0)
    assert (await harness.waits.children("child a (timed)", [A], 60.0)).timed_out
    marked = {**as_object(record), "over": True}
    assert harness.writer.written == [("child a (timed)", marked, True)]
    harness.children.end(A)
    assert (await harness.waits.children("child a (timed)", [A], 60.0)).timed_out


async def test_more_children_than_are_named_are_waited_for_in_turns() -> None:
    harness = WaitHarness()
    refs = [ChildRef(f"c{number:03}", f"uid-{number:03}") for number in range(250)]
    await harness.waits.children("children c000 and 249 more", refs, None)
    (waiting,) = first_waits(harness.waits.open)
    assert [one.name for one in waiting.children] == [ref.name for ref in refs[:100]]


async def test_an_attempt_that_is_over_waits_for_no_child() -> None:
    harness = WaitHarness(may_park=())
    pending = asyncio.ensure_future(harness.waits.children("child a", [A], None))
    await asyncio.sleep(0)
    harness.held.stop(Stop.DRAINING)
    with pytest.raises(AttemptOverError):
        await pending


async def test_children_that_ended_in_time_are_not_late_though_the_claim_is() -> None:
    harness = WaitHarness()
    assert not (await harness.waits.children("child a (timed)", [A], 60.0)).is_over
    harness.children.end(A)
    harness.now += 70
    assert (await harness.waits.children("child a (timed)", [A], 60.0)).ends == [view(A)]
    assert harness.writer.written == []


async def test_no_children_are_late_before_a_list_says_that_they_are_unfinished() -> None:
    harness = WaitHarness()
    await harness.waits.children("child a (timed)", [A], 60.0)
    harness.now += 70
    harness.children.lists = [AWAY]
    await asyncio.sleep(0)
    assert (await harness.waits.children("child a (timed)", [A], 60.0)).timed_out
    assert harness.children.listed == 3


async def test_a_child_that_is_waited_for_twice_is_answered_twice() -> None:
    harness = WaitHarness()
    pending = asyncio.ensure_future(harness.waits.children("children a", [A, A, B], None))
    await asyncio.sleep(0)
    harness.children.end(A)
    harness.children.end(B)
    assert (await pending).ends == [view(A), view(A), view(B)]


async def test_a_wait_that_is_over_takes_nothing_from_another_for_the_same() -> None:
    harness = WaitHarness()
    first, second = (
        asyncio.ensure_future(harness.waits.children("children a and 1 more", [A, other], None))
        for other in (B, C)
    )
    await asyncio.sleep(0)
    harness.children.end(A)
    harness.children.end(B)
    assert (await first).ends == [view(A), view(B)]
    assert not (await second).is_over
    (waiting,) = first_waits(harness.waits.open)
    assert waiting.children == (WaitedChild("c", "uid-c"),)


async def test_a_job_parks_once_all_its_waits_for_children_have_been_looked_at() -> None:
    """Those that share a key too: a park for children that are over would be woken at once."""
    harness = WaitHarness()
    harness.children.hidden = {B.uid}
    first = asyncio.ensure_future(harness.waits.children("children", [A, C], None))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(harness.waits.children("children", [B], None))
    await asyncio.sleep(0.3)
    assert not first.done()
    harness.children.end(B)
    assert (await second).ends == [view(B)]
    assert not (await first).is_over


async def test_more_children_than_a_park_names_park_and_what_ends_first_is_named() -> None:
    harness = WaitHarness()
    refs = [ChildRef(f"c{number:03}", f"uid-{number:03}") for number in range(25)]
    waits = [harness.waits.children(f"child {ref.name}", [ref], None) for ref in refs]
    answers = await asyncio.gather(*waits, harness.waits.sleep("cap", 3e7))
    assert len(answers) == 26
    assert len(harness.waits.open) == 26
    named = first_waits(harness.waits.open)
    assert [len(one.children) for one in named] == [1] * 19 + [0]
    assert named[-1].key == "cap"


async def test_more_signals_than_a_park_names_keep_the_slot_and_the_worker_says_why() -> None:
    harness = WaitHarness()
    harness.readable.clear()
    with structlog.testing.capture_logs() as lines:
        waits = [
            asyncio.ensure_future(harness.waits.signal(f"go-{number}", None))
            for number in range(21)
        ]
        await asyncio.sleep(0)
        harness.readable.set()
        await asyncio.sleep(0.1)
        assert not any(one.done() for one in waits)
    assert [line for line in lines if line["log_level"] == "warning"] == [
        {
            "event": "slot kept by a job that waits for more than a park names",
            "log_level": "warning",
            "job": harness.held.job.name,
            "signals": 21,
            "most": 20,
        }
    ]
    harness.signals = {"go-0": APPROVAL}
    await asyncio.wait(waits)
    assert len(first_waits(harness.waits.open)) == 20


async def test_a_wait_that_failed_is_no_longer_waited_for() -> None:
    harness = WaitHarness()
    harness.children.wait(A, None).set_exception(InvalidError("no", status=422, reason="Invalid"))
    with pytest.raises(InvalidError):
        await harness.waits.children("child a", [A], None)
    assert await harness.waits.sleep("later", 600.0) > 0
    assert set(harness.waits.open) == {"later"}


async def test_a_late_mark_that_lands_while_the_handler_ends_is_part_of_what_it_leaves() -> None:
    harness = WaitHarness()
    key = "child a (timed)"
    await harness.waits.children(key, [A], 60.0)
    harness.now += 70
    harness.writer.before_answer.clear()
    waiting = asyncio.ensure_future(harness.waits.children(key, [A], 60.0))
    await asyncio.sleep(0.1)
    waiting.cancel()
    await asyncio.sleep(0)
    harness.writer.before_answer.set()
    harness.waits.close()
    await harness.waits.settle(5.0)
    assert [key for key, _, _ in harness.writer.written] == [key]
    assert as_object(harness.waits.records[key])["over"] is True


async def test_a_leader_of_the_release_before_wakes_a_signal_that_begins_after_a_sleep() -> None:
    harness = WaitHarness(may_park={WaitKind.SLEEP, WaitKind.SIGNAL})
    harness.readable.clear()
    assert await harness.waits.sleep("remind", 86_400.0) > 0
    signal = asyncio.ensure_future(harness.waits.signal("approval", None))
    await asyncio.sleep(0)
    assert set(harness.waits.open) == {"remind", "approval"}
    signal.cancel()


async def test_what_begins_once_the_handler_is_over_is_not_waited_for() -> None:
    harness = WaitHarness()
    harness.waits.close()
    for begin in (
        lambda: harness.waits.sleep("remind", 86_400.0),
        lambda: harness.waits.signal("approval", None),
        lambda: harness.waits.children("child a", [A], None),
    ):
        with pytest.raises(AttemptOverError):
            await begin()
    assert harness.waits.open == {}


async def test_children_whose_ends_are_read_one_by_one_are_listed_now_and_then_only() -> None:
    harness = WaitHarness()
    began = asyncio.get_running_loop().time()
    refs = [ChildRef(f"c{number:03}", f"uid-{number:03}") for number in range(100)]
    harness.children.hidden = {ref.uid for ref in refs}
    pending = asyncio.ensure_future(harness.waits.children("children", refs, None))
    await asyncio.sleep(0.06)
    for ref in refs:
        harness.children.end(ref)
        await asyncio.sleep(0.001)
    await pending
    looks = (asyncio.get_running_loop().time() - began) / 0.1
    assert 1 <= harness.children.listed <= 2 + looks


async def test_while_a_step_holds_up_the_park_no_end_is_read_twice() -> None:
    harness = WaitHarness()
    harness.children.end(B)
    assert not (await harness.waits.children("children", [A, B], None)).is_over
    harness.children.asked.clear()
    harness.children.futures[B.uid] = concurrent.futures.Future()
    pending = asyncio.ensure_future(harness.waits.children("children", [A, B], None))
    await asyncio.sleep(0)
    assert harness.children.asked == ["a"]
    harness.children.end(A)
    assert (await pending).ends == [view(A), view(B)]


async def test_waits_that_look_at_the_same_time_share_a_list() -> None:
    harness = WaitHarness()
    harness.children.answers_after = 1.0  # all ask meanwhile, however slow the machine is
    waits = [harness.waits.children(f"child {ref.name}", [ref], None) for ref in (A, B, C)]
    assert not any(answer.is_over for answer in await asyncio.gather(*waits))
    assert harness.children.listed == 1


async def test_children_that_ended_in_time_are_not_late_because_their_parent_is_claimed_late() -> (
    None
):
    harness = WaitHarness()
    await harness.waits.children("child a (timed)", [A], 60.0)
    harness.now += 3600
    harness.children.hidden = {A.uid}
    pending = asyncio.ensure_future(harness.waits.children("child a (timed)", [A], 60.0))
    await asyncio.sleep(0.1)
    harness.children.end(A)
    assert (await pending).ends == [view(A)]
    assert harness.writer.written == []


async def test_a_park_shows_what_payload_a_signal_takes_and_the_records_do_not() -> None:
    harness, schema = WaitHarness(), {"type": "boolean"}
    await harness.waits.signal("approval", 3600.0, schema)
    [named] = first_waits(harness.waits.open)
    assert (named.key, named.payload_schema) == ("approval", schema)
    assert "payloadSchema" not in as_object(harness.waits.records["approval"])


async def test_a_wait_that_is_given_up_is_not_what_the_job_is_parked_for() -> None:
    harness = WaitHarness()
    assert await harness.waits.sleep("remind", 86_400.0) > 0
    assert not (await harness.waits.signal("approval", None)).is_over
    harness.waits.give_up("remind")
    assert set(harness.waits.open) == {"approval"}
    assert set(harness.waits.records) == {"remind"}


async def test_children_that_cannot_be_listed_hold_up_no_other_wait_beyond_its_end() -> None:
    harness = WaitHarness()
    harness.children.lists = [AWAY] * 10_000
    children = asyncio.ensure_future(harness.waits.children("child a", [A], None))
    await asyncio.sleep(0)
    assert await harness.waits.sleep("remind", 60.0) == 0.0
    assert harness.now <= NOW + 62
    signal = asyncio.ensure_future(harness.waits.signal("approval", None))
    await asyncio.sleep(0.1)
    assert not signal.done()
    harness.signals = {"approval": APPROVAL}
    assert (await signal).signal == APPROVAL
    children.cancel()
