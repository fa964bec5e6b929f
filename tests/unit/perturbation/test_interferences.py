"""What is done at a request or an event, and that nothing else is touched."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import orjson
import pytest

from asyncjob_perturbation import interferences
from asyncjob_perturbation.calls import Call, describe_event
from asyncjob_perturbation.interferences import (
    KillAt,
    LoseAnswer,
    MoveAt,
    WithholdFrom,
    interference,
    merged,
)
from asyncjob_perturbation.plan import AT_CALLS, AT_EVENTS, AT_WRITES, When
from asyncjob_perturbation.proxy import Events

CLAIM = Call("PATCH asyncjobs/a/status Running", 2)


def event(kind: str, name: str, version: int) -> bytes:
    metadata = {"name": name, "uid": name, "resourceVersion": str(version)}
    return orjson.dumps({"type": kind, "object": {"metadata": metadata}}) + b"\n"


async def shown(lines: Sequence[bytes]) -> Events:
    for number, line in enumerate(lines, start=1):
        yield Call("EVENT", number), line


async def seen(how: When, lines: Sequence[bytes], at: int = 2) -> list[bytes]:
    withhold = WithholdFrom(Call("EVENT", at), how)
    watched: AsyncIterator[bytes] = withhold.watch(shown(lines))
    return [line async for line in watched]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HELD_SECONDS", "LATE_SECONDS", "STALE_SECONDS"):
        monkeypatch.setattr(interferences, name, 0.01)


LIFE = [event("ADDED", "a", 1), event("MODIFIED", "a", 2), event("MODIFIED", "a", 3)]


def test_a_part_is_killed_once_before_its_request_which_never_arrives() -> None:
    kills: list[str] = []
    killer = KillAt(CLAIM, When.BEFORE, lambda: kills.append("killed"))
    assert killer.before(Call(CLAIM.what, 1))
    assert not killer.before(CLAIM)
    assert killer.before(CLAIM)
    killer.after(CLAIM)
    assert kills == ["killed"]


def test_a_part_is_killed_once_after_its_request_which_arrives() -> None:
    kills: list[str] = []
    killer = KillAt(CLAIM, When.AFTER, lambda: kills.append("killed"))
    assert killer.before(CLAIM)
    assert not kills
    killer.after(CLAIM)
    killer.after(CLAIM)
    assert kills == ["killed"]


def test_each_way_has_its_interference() -> None:
    ways = {
        When.BEFORE: KillAt,
        When.AFTER: KillAt,
        When.LOST: LoseAnswer,
        When.STALE: MoveAt,
        When.STALE_START: MoveAt,
    }
    for when in When:
        made = interference(CLAIM, when, lambda: None, Moves())
        assert isinstance(made, ways.get(when, WithholdFrom))
    assert {*AT_CALLS, *AT_WRITES, *AT_EVENTS} == {*When}


def test_an_answer_is_lost_once_and_nobody_is_killed() -> None:
    lost = LoseAnswer(CLAIM)
    assert lost.before(CLAIM)
    assert lost.after(Call(CLAIM.what, 1))
    assert not lost.after(CLAIM)
    assert lost.after(CLAIM)


class Moves:
    """Notes where a part was moved."""

    def __init__(self) -> None:
        self.made: list[bool] = []
        self.back = asyncio.Event()

    def __call__(self, *, away: bool) -> None:
        self.made.append(away)
        if not away:
            self.back.set()


async def test_a_part_is_moved_once_when_its_request_is_answered_and_back_later() -> None:
    moves = Moves()
    mover = interference(CLAIM, When.STALE, lambda: None, moves)
    assert mover.before(CLAIM)
    assert not moves.made
    assert mover.after(CLAIM)
    assert (moves.made, mover.fired, mover.over) == ([True], True, False)
    assert mover.after(CLAIM)
    await moves.back.wait()
    assert (moves.made, mover.over) == ([True, False], True)


async def test_a_part_that_starts_elsewhere_does_not_get_the_answer() -> None:
    moves, kills = Moves(), list[bool]()
    mover = interference(CLAIM, When.STALE_START, lambda: kills.extend(moves.made), moves)
    assert not mover.after(CLAIM)
    assert kills == [True]  # it was moved first: it starts again at once
    assert mover.after(CLAIM)


async def test_what_is_withheld_is_over_when_it_is_shown() -> None:
    late = WithholdFrom(Call("EVENT", 2), When.LATE)
    states = [(late.fired, late.over) async for _ in late.watch(shown(LIFE))]
    assert states == [(False, False), (True, False), (True, False)]
    assert late.over
    never = WithholdFrom(Call("EVENT", 9), When.LATE)
    assert [line async for line in never.watch(shown(LIFE))] == LIFE
    assert not never.over


async def test_merged_events_show_the_newest_of_each_object_only() -> None:
    lines = [*LIFE, event("ADDED", "b", 4), event("MODIFIED", "b", 5)]
    assert await seen(When.MERGED, lines) == [
        LIFE[0],
        LIFE[2],
        event("ADDED", "b", 5),
    ]


def test_what_came_and_went_is_not_shown_at_all() -> None:
    assert merged([event("ADDED", "a", 1), event("DELETED", "a", 2)]) == []
    assert merged([event("MODIFIED", "a", 1), event("DELETED", "a", 2)]) == [
        event("DELETED", "a", 2)
    ]


async def test_a_gap_ends_the_watch_as_an_api_server_does_that_has_forgotten() -> None:
    lines = await seen(When.GAP, LIFE)
    assert lines[0] == LIFE[0]
    [last] = lines[1:]
    assert orjson.loads(last)["object"]["code"] == 410


async def test_late_events_all_come_in_their_order() -> None:
    assert await seen(When.LATE, LIFE) == LIFE


async def test_an_event_that_does_not_come_changes_nothing() -> None:
    assert await seen(When.GAP, LIFE, at=9) == LIFE


def test_events_are_named_by_object_and_phase_also_in_tables_and_bookmarks_are_not() -> None:
    job = {"metadata": {"name": "a"}, "status": {"phase": "Queued"}}
    plain = orjson.dumps({"type": "ADDED", "object": job})
    table = orjson.dumps(
        {"type": "MODIFIED", "object": {"kind": "Table", "rows": [{"object": job}]}}
    )
    bare = orjson.dumps(
        {
            "type": "DELETED",
            "object": {"kind": "Table", "rows": [{"cells": ["a", "Queued"], "object": None}]},
        }
    )
    assert describe_event("asyncjobs", bare) == "EVENT asyncjobs/a DELETED"
    bookmark = orjson.dumps({"type": "BOOKMARK", "object": {"metadata": {}}})
    assert describe_event("asyncjobs", plain) == "EVENT asyncjobs/a ADDED Queued"
    assert describe_event("asyncjobs", table) == "EVENT asyncjobs/a MODIFIED Queued"
    assert describe_event("asyncjobs", bookmark) == ""
    assert describe_event("asyncjobs", b"{") == ""
