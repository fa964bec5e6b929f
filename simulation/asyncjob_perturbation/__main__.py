"""`python -m asyncjob_perturbation`: interfere with each part at each request, compare the ends."""

import asyncio
import math
import secrets
import tempfile
import time
from asyncio import FIRST_EXCEPTION
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click

from asyncjob.errors import ApiError
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.signals import click_errors, unwind_on_signals
from asyncjob_perturbation.case import Outcome, run_case, run_undisturbed
from asyncjob_perturbation.case_plan import CasePlan, Pair, Recording, turns
from asyncjob_perturbation.cluster import Cluster, running_cluster
from asyncjob_perturbation.cpu_time import cpu_seconds, machine_seconds, share_of_others
from asyncjob_perturbation.journal import Journal
from asyncjob_perturbation.plan import (
    MOVES,
    At,
    Case,
    NoSuchCallError,
    Part,
    When,
    all_cases,
    selected,
)
from asyncjob_perturbation.processes import prepare
from asyncjob_perturbation.report import Table, by_kind, complaint, failure, summary
from asyncjob_perturbation.scenarios import SCENARIOS

_SEED_BITS: Final = 32
_LOOK_SECONDS: Final = 0.1
_END_SECONDS: Final = 4.0
"""How long it takes to end the API server and what else is left."""

_MOST_UNJUDGED: Final = 3
"""How often a case or an undisturbed run is begun, if the machine was too busy to judge it."""


@dataclass(frozen=True)
class Wanted:
    """What is to be run."""

    scenarios: Sequence[str]
    parts: Sequence[Part]
    call: str | None
    when: Sequence[When]
    at: Sequence[At]
    end_at: float
    seed: int
    parallel: int


@dataclass
class Perturbation:
    """All cases on one API server, a few at a time, of all scenarios and parts in turns."""

    cluster: Cluster
    wanted: Wanted
    journal: Journal
    table: Table = field(default_factory=Table)
    begun: Counter[str] = field(default_factory=Counter)
    """How many cases of each scenario."""

    cut_off: int = 0
    """What was under way when the time was over."""

    _unjudged: Counter[Recording | Case] = field(default_factory=Counter)
    _running: int = 0

    async def run(self) -> None:
        """Run all, or what ends in time."""
        wanted = self.wanted
        pairs = turns(wanted.scenarios, wanted.parts, wanted.seed)
        known = [pair for pair in pairs if pair in self.journal.undisturbed]
        self._case_plan = CasePlan(
            [pair for pair in pairs if pair not in known], wanted.seed, wanted.end_at
        )
        for pair in known:
            self._plan_cases(pair)
        await self._work_until(wanted.end_at)

    async def _work_until(self, end_at: float) -> None:
        """Work side by side; what took longer than expected is cut off at the end of the time."""
        left = None if math.isinf(end_at) else max(0.0, end_at - time.monotonic())
        workers = [asyncio.create_task(self._work()) for _ in range(self.wanted.parallel)]
        ended, others = await asyncio.wait(workers, timeout=left, return_when=FIRST_EXCEPTION)
        self.cut_off = self._running if others else 0
        for worker in others:
            worker.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for worker in ended:
            worker.result()

    async def _work(self) -> None:
        """Record a scenario and part, or run a case, until there is none that ends in time."""
        while True:
            item = self._case_plan.next(time.monotonic())
            if item is None:
                if not self._running:
                    return
                await asyncio.sleep(_LOOK_SECONDS)  # what runs may plan more
                continue
            self._running += 1
            try:
                await self._do(item)
            finally:
                self._running -= 1

    async def _do(self, item: Recording | Case) -> None:
        """Do it; once more, if what came of it says nothing about the part."""
        try:
            outcome = await (
                self._record(item.pair) if isinstance(item, Recording) else self._run_case(item)
            )
        except (ApiError, TimeoutError) as error:
            reason = f"the API server did not answer the harness, {type(error).__name__} {error}"
        else:
            if not outcome.starved:
                return
            reason = "worker or API server had too little CPU time"
        self._unjudged[item] += 1
        is_last = self._unjudged[item] == _MOST_UNJUDGED
        click.echo(f"{'not judged' if is_last else 'again'}, {reason}: {item}")
        if is_last:
            self.table.unjudged += 1
        else:
            self._case_plan.again(item)

    async def _record(self, pair: Pair) -> Outcome:
        scenario, part = pair
        outcome = await run_undisturbed(self.cluster, SCENARIOS[scenario], part)
        if outcome.failed and not outcome.starved:
            self.table.row(scenario, part).failed += 1
            click.echo("\n".join(failure(None, outcome)))
        elif not outcome.failed:
            self.journal.add_undisturbed(pair, outcome)
            self._plan_cases(pair)
        return outcome

    def _plan_cases(self, pair: Pair) -> None:
        outcome = self.journal.undisturbed[pair]
        calls, events = outcome.recording.calls, outcome.recording.events
        row = self.table.row(*pair)
        row.calls, row.events = len(calls), len(events)
        cases = all_cases(*pair, calls, events)
        cases = selected(cases, self.wanted.call, self.wanted.when, self.wanted.at)
        if not self.wanted.call:
            cases = [case for case in cases if not self.journal.ended_well(case)]
        self._case_plan.add(pair, cases, outcome.seconds)

    async def _run_case(self, case: Case) -> Outcome:
        expected = self.journal.undisturbed[case.scenario, case.part].state
        self.begun[case.scenario] += 1
        outcome = await run_case(self.cluster, SCENARIOS[case.scenario], case, expected)
        if outcome.starved:
            return outcome
        self.journal.add_case(case, outcome)
        self.table.add(case, outcome)
        if outcome.failed:
            click.echo("\n".join(failure(case, outcome)))
            return outcome
        self._case_plan.took(case, outcome.seconds)
        if self.wanted.call:
            reached = "as undisturbed" if outcome.reached else "the request did not come"
            click.echo(f"{case.command()}: {reached} ({outcome.seconds:.1f} s)")
        return outcome


@click.command()
@click.option(
    "--scenario", type=click.Choice(sorted(SCENARIOS)), multiple=True, help="Only this one."
)
@click.option(
    "--part",
    type=click.Choice([one.value for one in Part]),
    multiple=True,
    help="Interfere with this part only.",
)
@click.option(
    "--call",
    help="Only at this request or event of one scenario and part: its number, or its name.",
)
@click.option(
    "--when",
    type=click.Choice([one.value for one in When]),
    multiple=True,
    help="Only this way of interfering.",
)
@click.option(
    "--at",
    type=click.Choice([one.value for one in At]),
    multiple=True,
    help="Only at requests that write, at those that read, or at events.",
)
@click.option(
    "--minutes",
    type=float,
    help="End after so long: what is under way then is cut off; all cases by default.",
)
@click.option("--seed", type=int, help="Which cases come first; a fresh one by default.")
@click.option("--parallel", type=click.IntRange(min=1), default=6, show_default=True)
@click.option(
    "--journal",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep what was run in this file, and pass over what it says has ended well.",
)
@click.option("--summary", "only_summary", is_flag=True, help="Only print what a journal says.")
def main(
    *,
    scenario: Sequence[str],
    part: Sequence[str],
    call: str | None,
    when: Sequence[str],
    at: Sequence[str],
    minutes: float | None,
    seed: int | None,
    parallel: int,
    journal: Path | None,
    only_summary: bool,
) -> None:
    """Interfere at each request of operator, worker and gateway; exit 1 on a difference."""
    began = time.monotonic()
    kept = Journal.open(journal, whatever_was_run=only_summary)
    if only_summary:
        told = kept.table()
        click.echo("\n".join([*summary(told, kept.spent), "", *by_kind(told), ""]))
        click.echo("\n".join(f"{cases} cases of {what}" for what, cases in kept.contents.items()))
        return
    seed = secrets.randbits(_SEED_BITS) if seed is None else seed
    click.echo(f"seed: {seed}")
    if call and not (len(scenario) == 1 and len(part) == 1):
        raise click.UsageError("calls are numbered by scenario and part: give both with --call")
    end_at = float("inf") if minutes is None else began + 60 * minutes - _END_SECONDS
    wanted = Wanted(
        scenarios=scenario or list(SCENARIOS),
        parts=[Part(one) for one in part] or list(Part),
        call=call,
        when=[When(one) for one in when] or list(When),
        at=[At(one) for one in at] or list(At),
        end_at=end_at,
        seed=seed,
        parallel=parallel,
    )
    prepare()
    with click_errors(), unwind_on_signals():
        try:
            before = machine_seconds()
            perturbation = asyncio.run(_run(wanted, kept))
        except NoSuchCallError as error:
            raise click.ClickException(str(error)) from error
    wall, cpu = time.monotonic() - began, cpu_seconds()
    others = share_of_others(machine_seconds() - before, cpu, wall)
    kept.add_spent(wall, cpu, perturbation.begun)
    click.echo("\n".join(perturbation.table.lines()))
    unjudged, cut_off = perturbation.table.unjudged, perturbation.cut_off
    click.echo(
        f"{wall:.0f} s, {cpu:.0f} s of CPU time, {parallel} cases at a time"
        + (f"; {unjudged} not judged, too little CPU time" if unjudged else "")
        + (f"; {cut_off} cut off, the time was over" if cut_off else "")
        + f"; other programs took {others:.0%} of the machine"
    )
    whole = kept.whole(chosen=bool(scenario or part or call or when or at))
    if why := complaint(perturbation.table, cut_off, others, whole):
        raise click.ClickException(why)


async def _run(wanted: Wanted, journal: Journal) -> Perturbation:
    with (
        tempfile.TemporaryDirectory(prefix="asyncjob-perturbation-") as folder,
        ControlPlane() as plane,
    ):
        lags = any(when in wanted.when for when in MOVES)
        async with running_cluster(plane, Path(folder), lags=lags) as cluster:
            perturbation = Perturbation(cluster, wanted, journal)
            await perturbation.run()
            return perturbation


if __name__ == "__main__":
    main()
