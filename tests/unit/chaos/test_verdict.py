"""What a cell has left behind is judged: a good one holds, and whatever is broken in it shows."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest

from asyncjob.audit.checker import CheckOptions, HistoryChecker
from asyncjob_chaos.judging.outcomes import Outcomes
from asyncjob_chaos.judging.signs import Sign
from asyncjob_chaos.judging.trace import HandlerTrace
from asyncjob_chaos.judging.verdict import (
    ANY_END,
    Accepted,
    CellRecord,
    CellTimes,
    Verdict,
    judge,
    missing_in_matrix,
    percentile,
)
from support.objects.histories import HistoryBuilder, Line

HEALED = CellTimes(
    healed=10.0, healed_epoch=datetime.fromisoformat("2026-11-23T12:00:02Z").timestamp()
)


def line(event: str, name: str, attempt: int = 1, at: float = 1.0) -> Line:
    return {"event": event, "name": name, "uid": f"uid-{name}", "attempt": attempt, "at": at}


class Cell:
    """Three jobs: a plain one, one whose worker crashed, one whose handler failed as asked."""

    def __init__(self) -> None:
        self.history = HistoryBuilder()
        self.accepted = [
            Accepted("plain", "key-1", 1.0),
            Accepted("crashed", "key-2", 2.0),
            Accepted("failing", "key-3", 20.0),
        ]
        self.trace = [
            line("entered", "plain"),
            line("effect", "plain"),
            line("entered", "crashed"),
            line("effect", "crashed"),
            line("entered", "crashed", 2),
            line("effect", "crashed", 2),
            line("entered", "failing", at=20.5),
            line("failed", "failing"),
            line("entered", "failing", 2, at=26.0),
            line("effect", "failing", 2),
        ]

    def tell(self) -> "Cell":
        history = self.history
        for name in ("plain", "crashed", "failing"):
            history.create(name)
        history.claim("plain")
        history.succeed("plain")
        history.claim("crashed", seconds=5)
        history.clock += 6
        history.expire("crashed")
        history.claim("failing")
        history.fail("failing")
        history.clock += 6
        history.promote("failing")
        for name in ("crashed", "failing"):
            history.claim(name, "worker-1")
            history.succeed(name)
        return self

    def judge(self) -> Verdict:
        outcomes = Outcomes()
        report = HistoryChecker(CheckOptions()).check(outcomes.seen(self.history.end()))
        trace = HandlerTrace.of(self.trace)
        return judge("stop-long/plain", CellRecord(self.accepted, outcomes, trace, report, HEALED))


def test_a_cell_in_which_every_job_ends_once_holds() -> None:
    verdict = Cell().tell().judge()
    assert verdict.holds, verdict
    assert (verdict.jobs, verdict.repeated) == (3, 1)
    assert verdict.recovered == 10.0  # the crashed one ended twelve seconds after the start
    assert verdict.pickup_p99 == 0.5


def forget_a_job(cell: Cell) -> None:
    cell.accepted.append(Accepted("gone", "key-4", 3.0))


def leave_a_job_waiting(cell: Cell) -> None:
    cell.history.create("waiting")
    cell.accepted.append(Accepted("waiting", "key-4", 3.0))


def leave_an_unconfirmed_job_running(cell: Cell) -> None:
    cell.history.create("unconfirmed")
    cell.history.claim("unconfirmed")


def end_a_job_in_a_wrong_way(cell: Cell) -> None:
    cell.history.create("bad")
    cell.history.claim("bad")
    cell.history.move("bad", "DeadLetter", "InvalidPayload", error={"type": "E"})
    cell.accepted.append(Accepted("bad", "key-4", 3.0))
    cell.trace.append(line("entered", "bad"))


def take_an_effect_away(cell: Cell) -> None:
    cell.trace = [one for one in cell.trace if (one["name"], one["event"]) != ("plain", "effect")]


def delete_a_job_before_its_end(cell: Cell) -> None:
    cell.history.create("deleted")
    cell.history.delete("deleted")
    cell.accepted.append(Accepted("deleted", "key-4", 3.0))


@pytest.mark.parametrize(
    "lose",
    [
        delete_a_job_before_its_end,
        forget_a_job,
        leave_a_job_waiting,
        leave_an_unconfirmed_job_running,
        end_a_job_in_a_wrong_way,
        take_an_effect_away,
    ],
)
def test_a_doctored_cell_has_lost_a_job(lose: Callable[[Cell], None]) -> None:
    cell = Cell().tell()
    lose(cell)
    verdict = cell.judge()
    assert len(verdict.lost) == 1
    assert not verdict.doubled
    assert not verdict.holds


def run_two_handlers_for_an_attempt(cell: Cell) -> None:
    cell.trace.append(line("entered", "plain"))


def take_effect_twice_in_an_attempt(cell: Cell) -> None:
    cell.trace += [line("effect", "crashed", 2)]
    cell.trace.remove(line("effect", "crashed"))


def take_effect_in_an_attempt_that_nothing_explains(cell: Cell) -> None:
    cell.trace += [line("entered", "plain", 2), line("effect", "plain", 2)]


def accept_two_jobs_under_one_key(cell: Cell) -> None:
    cell.accepted[1] = replace(cell.accepted[1], key="key-1")


@pytest.mark.parametrize(
    "double",
    [
        run_two_handlers_for_an_attempt,
        take_effect_twice_in_an_attempt,
        take_effect_in_an_attempt_that_nothing_explains,
        accept_two_jobs_under_one_key,
    ],
)
def test_a_doctored_cell_has_doubled_something(double: Callable[[Cell], None]) -> None:
    cell = Cell().tell()
    double(cell)
    verdict = cell.judge()
    assert len(verdict.doubled) == 1
    assert not verdict.lost
    assert not verdict.holds


def test_a_lease_that_two_workers_hold_breaks_a_rule_of_the_audit() -> None:
    cell = Cell().tell()
    cell.history.create("held")
    cell.history.claim("held")
    lease = cell.history.objects["held"]["status"]["lease"]
    cell.history.write("held", lease={**lease, "worker": "worker-9/1", "holder": "worker-9"})
    cell.history.succeed("held")
    cell.trace += [line("entered", "held"), line("effect", "held")]
    verdict = cell.judge()
    assert (verdict.lost, verdict.doubled) == ([], [])
    assert "lease.holder" in verdict.broken
    assert not verdict.holds


def test_a_job_that_may_end_as_it_likes_is_not_lost_as_a_dead_letter() -> None:
    cell = Cell().tell()
    end_a_job_in_a_wrong_way(cell)
    cell.accepted[-1] = replace(cell.accepted[-1], ends=ANY_END)
    assert cell.judge().holds


def test_a_fault_that_left_no_sign_fails_its_cell() -> None:
    verdict = Cell().tell().judge()
    verdict.missing = [Sign.LEASE_EXPIRED]
    assert not verdict.holds


def test_a_matrix_has_to_have_seen_each_sign_in_some_cell() -> None:
    cells = [
        Verdict("a", signs=Counter({Sign.LEASE_EXPIRED: 1})),
        Verdict("b", signs=Counter({Sign.LEADER_CHANGED: 2})),
    ]
    wanted = [Sign.LEASE_EXPIRED, Sign.LEADER_CHANGED, Sign.ANSWER_ADOPTED]
    assert missing_in_matrix(cells, wanted) == [Sign.ANSWER_ADOPTED]


def test_the_time_to_recover_is_unknown_while_a_job_has_not_ended() -> None:
    cell = Cell().tell()
    leave_a_job_waiting(cell)
    assert cell.judge().recovered is None


def test_the_99th_of_a_hundred_is_reported() -> None:
    assert percentile([], 0.99) is None
    assert percentile([3.0, 1.0], 0.99) == 3.0
    assert percentile([float(value) for value in range(100)], 0.99) == 99.0
