"""The whole of a run, with cases that are made up: what is judged, what is begun again."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from asyncjob_perturbation import __main__ as command
from asyncjob_perturbation import case_plan, plan
from asyncjob_perturbation.calls import Call
from asyncjob_perturbation.case import Outcome
from asyncjob_perturbation.cluster import Cluster
from asyncjob_perturbation.journal import Journal
from asyncjob_perturbation.plan import AT_CALLS, At, Case, Part, When
from asyncjob_perturbation.proxy import Recording
from asyncjob_perturbation.report import complaint
from asyncjob_perturbation.scenarios import SCENARIOS

CALLS = [Call("PATCH asyncjobs/a/status", number) for number in range(1, 11)]
NOBODY = cast("Cluster", None)


def made(**more: object) -> Outcome:
    outcome = Outcome(SCENARIOS["retry"], Part.WORKER, {}, Recording(list(CALLS)), seconds=1.0)
    for name, value in more.items():
        setattr(outcome, name, value)
    return outcome


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    async def undisturbed(*_: object) -> Outcome:
        return made()

    async def run_with(
        come: Callable[[Case], Outcome],
        end_at: float = float("inf"),
        hang: tuple[Call, When] | None = None,
        whens: Sequence[When] = AT_CALLS,
    ) -> tuple[command.Perturbation, bool]:
        """Return what was run, and whether it went well on a machine of its own."""

        async def case(_: object, __: object, case: Case, ___: object) -> Outcome:
            if (case.call, case.when) == hang:
                await asyncio.Event().wait()
            return come(case)

        monkeypatch.setattr(command, "run_undisturbed", undisturbed)
        monkeypatch.setattr(command, "run_case", case)
        wanted = command.Wanted(["retry"], [Part.WORKER], None, whens, list(At), end_at, 1, 3)
        perturbation = command.Perturbation(NOBODY, wanted, Journal())
        await perturbation.run()
        table = perturbation.table
        return perturbation, not complaint(table, perturbation.cut_off, others=0.0, whole=table)

    return run_with


async def test_a_case_whose_worker_got_too_little_cpu_time_is_run_again(
    run: Callable[..., Any],
) -> None:
    seen: list[Case] = []

    def come(case: Case) -> Outcome:
        seen.append(case)
        is_first = case.when is When.LOST and seen.count(case) == 1
        return made(starved=True, broken=["late"]) if is_first else made()

    perturbation, went_well = await run(come)
    assert went_well
    assert (len(seen), perturbation.table.total().cases) == (40, 30)
    assert perturbation.table.unjudged == 0


async def test_what_is_never_judged_or_met_fails_the_run_if_it_is_more_than_a_tenth(
    run: Callable[..., Any],
) -> None:
    def come(case: Case) -> Outcome:
        if case.call == CALLS[0] and case.when is When.LOST:
            raise TimeoutError
        return made(reached=case.call != CALLS[1] or case.when is When.LOST)

    perturbation, went_well = await run(come)
    assert went_well
    total = perturbation.table.total()
    assert (total.cases, total.missed, perturbation.table.unjudged) == (29, 2, 1)

    perturbation, went_well = await run(lambda case: made(reached=case.call not in CALLS[:2]))
    assert not went_well
    assert perturbation.table.total().missed == 6


async def test_one_difference_fails_the_run(run: Callable[..., Any]) -> None:
    last = CALLS[-1]

    def come(case: Case) -> Outcome:
        return made(broken=["a rule"] if (case.call, case.when) == (last, When.AFTER) else [])

    perturbation, went_well = await run(come)
    assert not went_well
    assert perturbation.table.total().failed == 1


async def test_what_is_under_way_at_the_end_of_the_time_is_cut_off_and_counted(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(case_plan, "_GUESS_SECONDS", 0.0)
    for when in When:
        monkeypatch.setitem(plan.EXTRA_SECONDS, when, -1.0)  # each fits in whatever is left
    hangs = (CALLS[0], When.LOST)
    perturbation, went_well = await run(lambda _: made(seconds=0.0), time.monotonic() + 2.0, hangs)
    assert went_well
    assert (perturbation.table.total().cases, perturbation.cut_off) == (29, 1)


async def test_an_error_of_one_ends_the_others(run: Callable[..., Any]) -> None:
    def come(case: Case) -> Outcome:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await run(come, hang=(CALLS[0], When.LOST))
