"""Steps, signals, children and arrays are judged: each breach in a made-up cell is caught."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from asyncjob.audit.checker import CheckOptions, HistoryChecker
from asyncjob_chaos.judging.outcomes import Outcomes
from asyncjob_chaos.judging.signs import Sign
from asyncjob_chaos.judging.trace import HandlerTrace
from asyncjob_chaos.judging.verdict import Accepted, CellRecord, CellTimes, Verdict, judge
from asyncjob_chaos.judging.waits import SentSignal
from support.objects.histories import JOBS, HistoryBuilder, Line

ARRAY = "array-1"
ARRAY_UID = "uid-of-array-1"
ITEMS = 4


class Cell:
    """A job whose worker dies after its first step, one that is sent a signal, a parent, an array.

    The first chunk of the array loses its worker after its first item.
    """

    def __init__(self) -> None:
        self.history = HistoryBuilder()
        self.accepted = [Accepted(name, name, 1.0) for name in ("steps", "answered", "parent")]
        self.signals = [SentSignal("answered", "go", 7, accepted=True, in_time=True)]
        self.array: dict[str, Any] = {
            "metadata": {"name": ARRAY, "uid": ARRAY_UID},
            "spec": {"items": {"count": ITEMS}},
            "status": {"phase": "Succeeded", "total": ITEMS, "succeeded": ITEMS, "failed": 0},
        }
        self.arrays = [self.array]
        self.trace: list[Line] = []
        self.outcomes = Outcomes()

    def line(self, event: str, name: str, attempt: int = 1, parks: int = 0, **more: Any) -> Line:
        """Add a line to the trace, a second after the one before."""
        at = 1.0 + len(self.trace)
        made = {"event": event, "name": name, "attempt": attempt, "parks": parks, "at": at, **more}
        self.trace.append(made)
        return made

    def find(self, event: str, name: str) -> Line:
        """Return the last line of this event."""
        return [one for one in self.trace if (one["event"], one["name"]) == (event, name)][-1]

    def take(self, name: str, key: str, attempt: int, parks: int = 0) -> None:
        """Take a step and keep its result."""
        token = {"step": key, "token": f"token-{key}"}
        self.line("begun", name, attempt, parks, step=key)
        self.line("taken", name, attempt, parks, **token)
        self.line("kept", name, attempt, parks, **token)
        steps = self.history.objects[name]["status"].get("steps", {})
        record = {"attempt": attempt, "result": {"digest": key}}
        self.history.write(name, steps={**steps, key: record})

    def park(self, name: str, kind: str, phase: str, reason: str) -> None:
        waiting = [{"kind": kind, "key": kind}]
        waits = {kind: {"kind": kind, "until": "2026-11-23T12:00:30Z"}}
        parked = {"phase": phase, "reason": reason, "waiting": waiting, "waits": waits}
        self.history.write(name, drop=("lease",), parks=1, **parked)

    def wake(self, name: str) -> None:
        self.history.clock += 4
        self.history.write(name, drop=("waiting",), phase="Queued", reason="WaitOver")
        self.history.claim(name)

    def tell(self) -> "Cell":
        self._tell_of_steps()
        self._tell_of_signal()
        self._tell_of_parent()
        self._tell_of_array()
        return self

    def _tell_of_steps(self) -> None:
        history = self.history
        history.create("steps")
        history.claim("steps", seconds=5)
        self.line("entered", "steps")
        self.take("steps", "step-0", 1)
        self.line("begun", "steps", 1, step="step-1")
        history.clock += 6
        history.expire("steps")
        history.clock += 6
        history.claim("steps")
        self.line("entered", "steps", 2)
        self.line("kept", "steps", 2, step="step-0", token="token-step-0")
        self.park("steps", "Sleep", "Scheduled", "Sleeping")
        self.wake("steps")
        self.line("entered", "steps", 3, 1)
        self.take("steps", "step-1", 3, 1)
        self.line("effect", "steps", 3, 1)
        history.succeed("steps")

    def _tell_of_signal(self) -> None:
        history = self.history
        history.create("answered")
        history.claim("answered")
        self.line("entered", "answered")
        self.park("answered", "Signal", "Pending", "WaitingForSignal")
        history.change_spec("answered", signals={"go": {"sentBy": "ada"}})
        self.wake("answered")
        self.line("entered", "answered", 2, 1)
        self.line("received", "answered", 2, 1, value=7)
        self.line("effect", "answered", 2, 1)
        history.succeed("answered")

    def _tell_of_parent(self) -> None:
        history = self.history
        history.create("parent")
        history.claim("parent")
        self.line("entered", "parent")
        for child in ("left", "right"):
            history.create(child, labels={"asyncjob.dev/parent": history.uid("parent")})
            history.claim(child)
            self.line("entered", child)
        self.park("parent", "Children", "Pending", "WaitingForChildren")
        for child in ("left", "right"):
            self.line("effect", child)
            history.succeed(child)
        self.wake("parent")
        self.line("entered", "parent", 2, 1)
        self.line("gathered", "parent", 2, 1, children=["left", "right"])
        self.line("effect", "parent", 2, 1)
        history.succeed("parent")

    def _tell_of_array(self) -> None:
        history = self.history
        for chunk, items in (("chunk-1", (0, 1)), ("chunk-2", (2, 3))):
            history.create(chunk, labels={"asyncjob.dev/array-uid": ARRAY_UID})
            history.claim(chunk, seconds=5)
            for item in items:
                self.line("item", chunk, array=ARRAY, item=item)
            if chunk == "chunk-1":
                history.clock += 6
                history.expire(chunk)
                history.clock += 6
                history.claim(chunk)
                self.line("item", chunk, 2, array=ARRAY, item=1)
            history.succeed(chunk)
            history.delete(chunk)

    def judge(self) -> Verdict:
        checker = HistoryChecker(CheckOptions())
        report = checker.check(self.outcomes.seen(self.history.end()))
        found = CellRecord(
            self.accepted,
            self.outcomes,
            HandlerTrace.of(self.trace),
            report,
            CellTimes(healed=10.0),
            signals=self.signals,
            accepted_arrays=[Accepted(ARRAY, ARRAY, 1.0)],
            arrays=self.arrays,
        )
        return judge("stop-long/waits", found)


def test_a_cell_of_waits_holds_and_what_is_entered_after_a_park_is_no_repetition() -> None:
    cell = Cell().tell()
    verdict = cell.judge()
    assert verdict.holds, verdict
    assert verdict.repeated == 2  # the handler whose worker died, and the item whose worker died
    assert verdict.recovered is not None
    assert cell.outcomes.signs == {
        Sign.PARKED: 3,
        Sign.WOKEN_BY_TIME: 1,
        Sign.WOKEN_BY_SIGNAL: 1,
        Sign.WOKEN_BY_CHILDREN: 1,
        Sign.INTERRUPTED_BETWEEN_STEPS: 1,
        Sign.CHUNK_INTERRUPTED: 1,
    }


def test_bodies_of_steps_that_were_begun_again_are_counted() -> None:
    cell = Cell().tell()
    assert HandlerTrace.of(cell.trace).waits.steps_begun_again == 1


def forget_the_result_of_a_step(cell: Cell) -> None:
    del cell.history.objects["steps"]["status"]["steps"]["step-0"]
    cell.history.mark("steps", annotations={"seen": "again"})


def replace_the_result_of_a_step(cell: Cell) -> None:
    steps = cell.history.objects["steps"]["status"]["steps"]
    cell.history.write("steps", steps={**steps, "step-0": {**steps["step-0"], "attempt": 3}})


def begin_a_sleep_again(cell: Cell) -> None:
    later = {"kind": "Sleep", "until": "2026-11-23T12:00:40Z"}
    cell.history.write("steps", waits={"Sleep": later})


def never_store_a_result_that_was_given(cell: Cell) -> None:
    cell.line("kept", "answered", 2, 1, step="before", token="token")


def lose_an_accepted_signal(cell: Cell) -> None:
    del cell.history.objects["answered"]["spec"]["signals"]
    cell.history.mark("answered", annotations={"seen": "again"})


def not_receive_an_accepted_signal(cell: Cell) -> None:
    cell.trace.remove(cell.find("received", "answered"))


def refuse_a_signal_in_time(cell: Cell) -> None:
    cell.signals = [replace(cell.signals[0], accepted=False)]
    cell.trace.remove(cell.find("received", "answered"))


def never_answer_for_a_signal(cell: Cell) -> None:
    cell.signals = [replace(cell.signals[0], accepted=None, in_time=False)]


def go_on_before_a_child(cell: Cell) -> None:
    cell.find("gathered", "parent")["at"] = cell.find("effect", "right")["at"] - 0.5


def wait_for_a_child_that_nobody_has_seen(cell: Cell) -> None:
    cell.find("gathered", "parent")["children"].append("third")
    cell.line("effect", "third")["at"] = 0.5


def leave_an_array_running(cell: Cell) -> None:
    cell.array["status"]["phase"] = "Running"


def lose_an_array(cell: Cell) -> None:
    cell.arrays = []


def count_an_item_twice(cell: Cell) -> None:
    cell.array["status"]["succeeded"] += 1


def fail_an_item(cell: Cell) -> None:
    cell.array["status"] |= {"succeeded": ITEMS - 1, "failed": 1}


def count_an_item_that_did_nothing(cell: Cell) -> None:
    cell.trace.remove(cell.find("item", "chunk-2"))


def leave_a_chunk_unfinished(cell: Cell) -> None:
    cell.history.create("chunk-3", labels={"asyncjob.dev/array-uid": ARRAY_UID})


@pytest.mark.parametrize(
    "lose",
    [
        forget_the_result_of_a_step,
        replace_the_result_of_a_step,
        begin_a_sleep_again,
        never_store_a_result_that_was_given,
        lose_an_accepted_signal,
        not_receive_an_accepted_signal,
        refuse_a_signal_in_time,
        never_answer_for_a_signal,
        go_on_before_a_child,
        wait_for_a_child_that_nobody_has_seen,
        leave_an_array_running,
        lose_an_array,
        count_an_item_twice,
        fail_an_item,
        count_an_item_that_did_nothing,
        leave_a_chunk_unfinished,
    ],
)
def test_a_doctored_cell_of_waits_has_lost_something(lose: Callable[[Cell], None]) -> None:
    cell = Cell().tell()
    lose(cell)
    verdict = cell.judge()
    assert verdict.lost
    assert not verdict.doubled
    assert not verdict.holds


def take_a_step_again_after_its_result_was_stored(cell: Cell) -> None:
    cell.line("taken", "steps", 3, 1, step="step-0", token="another")


def take_a_step_twice_in_one_attempt(cell: Cell) -> None:
    cell.line("taken", "steps", 3, 1, step="step-1", token="another")


def take_a_step_more_often_than_is_explained(cell: Cell) -> None:
    for attempt in (1, 2):  # one attempt was interrupted, which explains one of them
        cell.line("taken", "steps", attempt, step="step-1", token="another")


def have_two_results_of_a_step(cell: Cell) -> None:
    cell.line("kept", "steps", 3, 1, step="step-0", token="another")


def receive_a_signal_and_be_too_late(cell: Cell) -> None:
    cell.line("late", "answered", 2, 1)


def receive_what_was_refused(cell: Cell) -> None:
    cell.signals = [replace(cell.signals[0], accepted=False, in_time=False)]


def receive_what_nobody_sent(cell: Cell) -> None:
    cell.line("received", "answered", 2, 1, value=8)


def have_a_third_child(cell: Cell) -> None:
    cell.history.create("third", labels={"asyncjob.dev/parent": cell.history.uid("parent")})
    cell.history.claim("third")
    cell.line("entered", "third")
    cell.line("effect", "third")
    cell.history.succeed("third")


def run_an_item_in_two_chunks(cell: Cell) -> None:
    cell.line("item", "chunk-2", array=ARRAY, item=0)


def run_an_item_twice_in_one_attempt(cell: Cell) -> None:
    cell.line("item", "chunk-1", array=ARRAY, item=0)


def run_an_item_more_often_than_is_explained(cell: Cell) -> None:
    cell.line("item", "chunk-1", 3, array=ARRAY, item=1)


def enter_a_handler_twice_after_one_park(cell: Cell) -> None:
    cell.line("entered", "answered", 2, 1)


def take_effect_before_and_after_a_park(cell: Cell) -> None:
    cell.line("effect", "answered", 1)


@pytest.mark.parametrize(
    "double",
    [
        take_a_step_again_after_its_result_was_stored,
        take_a_step_twice_in_one_attempt,
        take_a_step_more_often_than_is_explained,
        have_two_results_of_a_step,
        receive_a_signal_and_be_too_late,
        receive_what_was_refused,
        receive_what_nobody_sent,
        have_a_third_child,
        run_an_item_in_two_chunks,
        run_an_item_twice_in_one_attempt,
        run_an_item_more_often_than_is_explained,
        enter_a_handler_twice_after_one_park,
        take_effect_before_and_after_a_park,
    ],
)
def test_a_doctored_cell_of_waits_has_doubled_something(double: Callable[[Cell], None]) -> None:
    cell = Cell().tell()
    double(cell)
    verdict = cell.judge()
    assert len(verdict.doubled) == 1
    assert not verdict.lost
    assert not verdict.holds


def test_a_signal_that_came_too_late_and_was_refused_is_nothing_lost() -> None:
    cell = Cell().tell()
    cell.signals = [replace(cell.signals[0], accepted=False, in_time=False)]
    cell.find("received", "answered")["event"] = "late"
    assert cell.judge().holds


def test_a_wait_for_a_signal_that_ends_by_its_limit_is_not_woken_by_a_signal() -> None:
    cell = Cell()
    cell.history.create("unanswered")
    cell.history.claim("unanswered")
    cell.park("unanswered", "Signal", "Pending", "WaitingForSignal")
    cell.wake("unanswered")
    [*cell.outcomes.seen(cell.history.end())]
    assert +cell.outcomes.signs == Counter({Sign.PARKED: 1})


def test_a_chunk_that_was_deleted_while_nothing_was_seen_may_have_been_interrupted() -> None:
    cell = Cell().tell()
    cell.history.create("chunk-3", labels={"asyncjob.dev/array-uid": ARRAY_UID})
    cell.history.claim("chunk-3")
    cell.line("item", "chunk-3", array=ARRAY, item=0)
    del cell.history.objects["chunk-3"]
    cell.history.relist()
    assert "chunk-3" in {line["object"]["metadata"]["name"] for line in of_jobs(cell)}
    assert cell.judge().holds
    assert "chunk-3" not in cell.outcomes.jobs


def of_jobs(cell: Cell) -> list[Line]:
    return [one for one in cell.history.lines if one.get("resource") == JOBS and "object" in one]
