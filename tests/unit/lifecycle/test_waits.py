"""What a job names as it parks, and keys that two kinds of waits have used."""

import concurrent.futures
import threading
from typing import Any

import pytest

from asyncjob.app.errors import StepError
from asyncjob.app.steps import NO_STEPS, Steps
from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.waits import (
    MAX_WAITING,
    WaitedChild,
    WaitKind,
    WaitView,
    can_be_named,
    children_wait,
    first_waits,
    keep_sleeps,
    kinds_of,
    mark_over,
    open_wait,
    parked_message,
    read_waiting,
    signal_wait,
    wait_record,
    waits_of,
    wake_of,
    without_dropped,
)

SOON, LATE = "2027-01-01T00:00:00.000Z", "2028-01-01T00:00:00.000Z"
NAP, APPROVAL = wait_record(WaitKind.SLEEP, SOON), wait_record(WaitKind.SIGNAL, LATE)


def test_what_a_job_names_as_it_parks_are_its_signals_and_then_what_ends_first() -> None:
    sleeps = {
        f"nap-{day:02}": wait_record(WaitKind.SLEEP, f"2027-01-{day:02}T00:00:00.000Z")
        for day in range(28, 0, -1)
    }
    late = wait_record(WaitKind.SIGNAL, "2028-01-01T00:00:00.000Z")
    waiting = first_waits({**sleeps, "approval": open_wait(WaitKind.SIGNAL), "veto": late})
    assert [one.key for one in waiting][:4] == ["veto", "approval", "nap-01", "nap-02"]
    assert len(waiting) == MAX_WAITING


def test_what_ends_first_is_named_beside_more_children_than_a_job_names() -> None:
    children = {
        f"child {number:02}": children_wait(open_wait(WaitKind.CHILDREN), [WaitedChild("c", "u")])
        for number in range(25)
    }
    waits = {**children, "cap": NAP, "late": wait_record(WaitKind.SLEEP, LATE)}
    waiting = first_waits(waits)
    assert [one.key for one in waiting][-2:] == ["child 18", "cap"]
    assert len(waiting) == MAX_WAITING


@pytest.mark.parametrize(("signals", "fits"), [(18, True), (19, False)])
def test_a_job_names_all_signals_what_ends_first_and_one_wait_for_children(
    signals: int, fits: bool
) -> None:
    asked = {f"s{number}": open_wait(WaitKind.SIGNAL) for number in range(signals)}
    children = {f"c{number}": open_wait(WaitKind.CHILDREN) for number in range(50)}
    sleeps = {"nap": NAP, "rest": wait_record(WaitKind.SLEEP, LATE)}
    waits = {**sleeps, **children, **asked}
    assert can_be_named(waits) is fits
    assert can_be_named({**waits, "c9": {"kind": "Children", "until": "2026-01-01"}})
    assert can_be_named({**children, **sleeps})
    assert can_be_named({**asked, **sleeps})
    if fits:
        named = [one.key for one in first_waits(waits)]
        assert {*named} >= {*asked, "c0", "nap"}
        assert len(named) == MAX_WAITING


def test_of_more_waits_for_children_than_a_job_names_those_for_the_fewest_are_named() -> None:
    def waits_for(number: int) -> JsonObject:
        children = [WaitedChild(f"c{one}", f"u{one}") for one in range(number)]
        return children_wait(open_wait(WaitKind.CHILDREN), children)

    waits = {f"children {number:02}": waits_for(number) for number in range(30, 0, -1)}
    assert [one.key for one in first_waits(waits)] == [f"children {n:02}" for n in range(1, 21)]


def test_a_wait_for_children_that_no_time_ends_is_named_before_those_with_a_limit() -> None:
    limited = {f"c{number:02}": wait_record(WaitKind.CHILDREN, LATE) for number in range(30)}
    named = [one.key for one in first_waits({**limited, "open": open_wait(WaitKind.CHILDREN)})]
    assert named[0] == "open"
    assert "c00" in named


def test_all_waits_of_a_job_share_the_children_that_it_names() -> None:
    children = [WaitedChild(f"c{number}", f"u{number}") for number in range(100)]
    waits = {str(one): children_wait(open_wait(WaitKind.CHILDREN), children) for one in range(3)}
    assert [len(one.children) for one in first_waits(waits)] == [66] * 3


def test_a_record_has_the_kind_and_the_end_of_a_wait_and_an_open_one_the_kind() -> None:
    assert NAP == {"kind": "Sleep", "until": SOON}
    assert open_wait(WaitKind.SIGNAL) == {"kind": "Signal"}
    assert waits_of({"waits": {"nap": NAP}}) == {"nap": NAP}
    assert waits_of({}) == {}


def test_waits_that_are_over_are_marked_and_the_others_are_as_they_were() -> None:
    waits = {"nap": NAP, "approval": APPROVAL}
    assert mark_over(waits, {"nap"}) == {"nap": {**NAP, "over": True}, "approval": APPROVAL}
    assert waits == {"nap": NAP, "approval": APPROVAL}


def test_a_redrive_keeps_the_records_of_sleeps_and_drops_all_others() -> None:
    late = {**wait_record(WaitKind.CHILDREN, SOON), "over": True}
    dropped = keep_sleeps({"nap": NAP, "approval": APPROVAL, "child a": late})
    assert dropped == {"nap": NAP, "approval": None, "child a": None}
    assert without_dropped(dropped or {}) == {"nap": NAP}
    assert keep_sleeps({"approval": APPROVAL}) is None
    assert keep_sleeps({}) is None


def test_what_a_parked_job_waits_for_is_read_with_whether_its_signal_is_there() -> None:
    entries = [
        {"kind": "Signal", "key": "approval"},
        {"kind": "Sleep", "key": "nap", "until": SOON},
    ]
    status: dict[str, Any] = {"waiting": entries}
    waiting = (WaitView("Signal", "approval"), WaitView("Sleep", "nap", SOON))
    assert read_waiting(status, ()) == waiting
    sent = read_waiting(status, ["approval", "nap"])
    assert [one.sent for one in sent] == [True, False]
    assert [one.to_json() for one in sent] == entries
    assert kinds_of(waiting) == {"Signal", "Sleep"}
    assert read_waiting({}, ()) == ()


@pytest.mark.parametrize(
    ("waiting", "words"),
    [
        ([WaitView("Sleep", "nap", SOON)], f"sleeps until {SOON} (nap)"),
        (
            [WaitView("Sleep", "nap", SOON), WaitView("Sleep", "rest", LATE)],
            f"sleeps until {SOON} (nap and 1 more)",
        ),
        ([WaitView("Signal", "approval")], "waits for signal approval"),
        ([WaitView("Signal", "approval", LATE)], f"waits for signal approval until {LATE}"),
        (
            [WaitView("Sleep", "nap", SOON), WaitView("Signal", "approval", LATE)],
            f"waits for signal approval and 1 more until {LATE}",
        ),
        (
            [WaitView("Children", "children a and 5 more (c0b89fad)")],
            "waits for children a and 5 more",
        ),
    ],
)
def test_a_parked_job_says_what_it_waits_for(waiting: list[WaitView], words: str) -> None:
    assert parked_message(waiting) == words


@pytest.mark.parametrize("over", [True, False])
def test_a_key_that_another_version_of_the_handler_used_otherwise_is_refused(over: bool) -> None:
    nap: dict[str, Any] = {**wait_record(WaitKind.SLEEP, "2027-01-01T00:00:00.000Z"), "over": over}
    asked = wait_record(WaitKind.SIGNAL, "2027-01-01T00:00:00.000Z")
    steps = Steps({}, NO_STEPS, threading.Event(), "job", {"nap": nap, "approval": asked})
    with pytest.raises(StepError, match=r"^signal 'nap': an earlier attempt .* for a sleep; give"):
        run(steps.signal("nap", None, None).result)
    with pytest.raises(StepError, match=r"^sleep 'approval': an earlier attempt .* for a signal"):
        run(steps.sleep("approval", 5.0).result)


def run(call: Any) -> Any:
    """Call where no event loop runs, as in the thread of a sync handler."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def test_a_job_shows_the_schema_of_a_signal_unless_it_is_large_and_nobody_reads_it_back() -> None:
    small: JsonObject = {"type": "boolean"}
    fits = "x" * (4096 - len('{"title":""}'))
    deep: JsonObject = {"type": "object"}
    for _ in range(20):
        deep = {"items": deep}
    waits = {
        "a-small": signal_wait(open_wait(WaitKind.SIGNAL), small),
        "b-fits": signal_wait(APPROVAL, {"title": fits}),
        "c-large": signal_wait(open_wait(WaitKind.SIGNAL), {"title": fits + "x"}),
        "d-none": signal_wait(open_wait(WaitKind.SIGNAL), None),
        "e-deep": signal_wait(open_wait(WaitKind.SIGNAL), deep),
    }

    entries = {str(one.key): one.to_json() for one in first_waits(waits)}
    shown = {key: entry.get("payloadSchema") for key, entry in entries.items()}

    assert shown == dict.fromkeys(waits) | {"a-small": small, "b-fits": {"title": fits}}
    assert "payloadSchema" not in APPROVAL
    read = read_waiting({"waiting": list(entries.values())}, ())
    assert not any(one.payload_schema for one in read)


def test_a_park_shows_schemas_of_sixteen_levels_and_names_a_hundred_children_of_a_wait() -> None:
    schema: JsonObject = {}
    for _ in range(16):
        schema = {"items": schema}
    shown = signal_wait(open_wait(WaitKind.SIGNAL), schema)
    assert shown["payloadSchema"] == schema
    assert "payloadSchema" not in signal_wait(open_wait(WaitKind.SIGNAL), {"items": schema})
    children = [WaitedChild(f"c{number}", f"u{number}") for number in range(150)]
    [wait] = first_waits({"all": children_wait(open_wait(WaitKind.CHILDREN), children)})
    assert len(wait.children) == 100


def test_a_job_is_woken_by_the_end_of_arrays_only_where_one_is_among_its_children() -> None:
    jobs = [WaitedChild("a", "uid-a"), WaitedChild("b", "uid-b")]
    array = WaitedChild("sorted", "uid-sorted", "AsyncArray")
    wait = open_wait(WaitKind.CHILDREN)
    assert wake_of(children_wait(wait, jobs)) == "Children"
    assert wake_of(children_wait(wait, [*jobs, array])) == "AsyncArray"
    assert wake_of(NAP) == "Sleep"
    assert wake_of(APPROVAL) == "Signal"


def test_waits_with_a_schema_can_be_told_apart_in_a_set() -> None:
    one = WaitView("Signal", "go", payload_schema={"type": "string"})
    assert len({one, WaitView("Signal", "go", payload_schema={"type": "string"})}) == 1
