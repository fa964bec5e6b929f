"""What is done at a request or an event, and that nothing else is touched."""

from collections.abc import AsyncIterator, Sequence

import orjson
import pytest

from asyncjob_perturbation import interferences
from asyncjob_perturbation.calls import Call, describe_event
from asyncjob_perturbation.interferences import (
    KillAt,
    LoseAnswer,
    WithholdFrom,
    interference,
    merged,
)
from asyncjob_perturbation.plan import AT_CALLS, AT_EVENTS, When
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
    for name in ("HELD_SECONDS", "LATE_SECONDS"):
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
    ways = {When.BEFORE: KillAt, When.AFTER: KillAt, When.LOST: LoseAnswer}
    for when in When:
        made = interference(CLAIM, when, lambda: None)
        assert isinstance(made, ways.get(when, WithholdFrom))
    assert {*AT_CALLS, *AT_EVENTS} == {*When}


def test_an_answer_is_lost_once_and_nobody_is_killed() -> None:
    lost = LoseAnswer(CLAIM)
    assert lost.before(CLAIM)
    assert lost.after(Call(CLAIM.what, 1))
    assert not lost.after(CLAIM)
    assert lost.after(CLAIM)


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
