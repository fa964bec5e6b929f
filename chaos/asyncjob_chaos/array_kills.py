"""`make array-kills`: one large array while all that works at it is killed, again and again.

A round kills a worker, the operator that leads, the gateway and the API server, each for itself,
and then a worker and the leader while the API server is away. The array is submitted and asked for
through the gateway, and plain jobs go on beside it. What is judged: that each item counts once and
was run, which of them ran again and why, by what the handlers have noted; and by the audit, the
whole recorded history.
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click
import orjson

from asyncjob.audit.checker import CheckOptions, HistoryChecker, HistoryReport
from asyncjob.audit.evidence import AuditLog, HandlerRecord
from asyncjob.audit.history_file import read_history
from asyncjob.audit.retention_rules import RetentionFloors
from asyncjob.client import JobsClient
from asyncjob.models.array import ArrayItems
from asyncjob.names import ARRAY_LABEL, JOBS, collection_path
from asyncjob.rest.arrays import ArrayInfo, ArraySubmission
from asyncjob_bench.stats.item_notes import ItemNote, read_notes
from asyncjob_chaos.errors import ChaosError
from asyncjob_chaos.handlers import BEGAN, DONE, ITEM_CONCURRENCY, NOTED_ITEM
from asyncjob_chaos.judging.item_runs import ItemVerdict, WorkerKill, judge_items
from asyncjob_chaos.judging.outcomes import Outcomes
from asyncjob_chaos.judging.signs import Sign
from asyncjob_chaos.load import LOADS, LoadKind
from asyncjob_chaos.planes import PlaneNeeds, Planes
from asyncjob_chaos.target import GATEWAY, QUEUE, WORKERS, FaultTarget, Setup, running
from asyncjob_dev.errors import DevError
from asyncjob_dev.signals import unwind_on_signals

NAME: Final = "killed"
ITEMS: Final = 100_000
CHUNKS_AT_ONCE: Final = 20
LEASE_SECONDS: Final = 20
"""Longer than the API server is away, so that no worker gives up a chunk that it runs."""

AWAY_SECONDS: Final = 2.0
PATIENCE_SECONDS: Final = 120.0
END_SECONDS: Final = 1200.0
GONE_SECONDS: Final = 60.0
SETTLE_SECONDS: Final = 3.0
"""In which the recorder has written what it was told last."""

ROUND_SECONDS: Final = 12.0
"""What the items take at least for each round of kills."""

SHORTEST_ITEM_SECONDS: Final = 0.05
LARGEST_CHUNK: Final = 500

JOBS_BESIDE: Final = LoadKind("beside", rate=2.0, at_first=4, order=LOADS[0].order)


@dataclass(frozen=True, kw_only=True)
class ArrayPlan:
    """How large, and how often it is interrupted."""

    items: int = ITEMS
    rounds: int = 4

    @property
    def item_seconds(self) -> float:
        """How long an item takes: the fewer there are, so that kills come while items are left."""
        at_once = CHUNKS_AT_ONCE * ITEM_CONCURRENCY
        return max(ROUND_SECONDS * self.rounds * at_once / self.items, SHORTEST_ITEM_SECONDS)

    @property
    def chunk_size(self) -> int:
        """A hundred chunks, or more."""
        return min(max(self.items // 100, 10), LARGEST_CHUNK)


@dataclass
class KilledArray:
    """What a run has come to."""

    items: ItemVerdict
    report: HistoryReport
    seconds: float
    kills: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """In words, all that is not as it should be."""


class _Kills:
    """Kills by turns, each once so many items are done."""

    def __init__(self, target: FaultTarget, plan: ArrayPlan) -> None:
        self.workers: list[WorkerKill] = []
        self.done: list[str] = []
        self.too_late: list[str] = []
        self._target = target
        self._plan = plan
        self._turn = 0

    def run(self) -> None:
        """Do all rounds, evenly over the items."""
        acts: list[Callable[[], None]] = [
            self._kill_worker,
            self._kill_leader,
            self._kill_gateway,
            self._kill_api_server,
            self._kill_all,
        ]
        acts *= self._plan.rounds
        for number, act in enumerate(acts, 1):
            self._await_done(self._plan.items * number // (len(acts) + 2))
            act()

    def _await_done(self, wanted: int) -> None:
        self._target.until(
            lambda: _count_notes(self._target, DONE) >= wanted,
            f"{wanted} items that are done",
            END_SECONDS,
        )

    def _kill_worker(self, unwritten: float = 0.0) -> None:
        name = WORKERS[self._turn % len(WORKERS)]
        self._turn += 1
        self._target.until(lambda: self._target.process(name).running, f"{name} to run again")
        pid = self._target.process(name).pid
        assert pid is not None
        self.workers.append(WorkerKill(pid, unwritten))
        self._note(name)
        self._target.kill(name, Sign.WORKER_ENDED)

    def _kill_leader(self) -> None:
        leader = self._target.leader()
        self._note(leader)
        self._target.kill(leader, Sign.OPERATOR_ENDED)

    def _kill_gateway(self) -> None:
        self._note(GATEWAY)
        self._target.kill(GATEWAY, Sign.GATEWAY_ENDED)

    def _kill_api_server(self) -> None:
        self._away(lambda: None)

    def _kill_all(self) -> None:
        leader = self._target.leader()

        def others() -> None:
            self._kill_worker(unwritten=AWAY_SECONDS / 2)
            self._note(leader)
            self._target.kill(leader, Sign.OPERATOR_ENDED)

        self._away(others)

    def _away(self, meanwhile: Callable[[], None]) -> None:
        self._note("API server")
        self._target.plane.kill_apiserver()
        time.sleep(AWAY_SECONDS / 2)
        meanwhile()
        time.sleep(AWAY_SECONDS / 2)
        self._target.plane.start_apiserver()

    def _note(self, what: str) -> None:
        done = len({note.item for note in _notes(self._target, DONE)})
        self.done.append(f"after {done} items: {what}")
        if done == self._plan.items:
            self.too_late.append(f"no item was left when this was killed: {what}")
        click.echo(f"    {self.done[-1]} is killed", err=True)


def run_array(plan: ArrayPlan, folder: Path) -> KilledArray:
    """Run an array of so many items, and judge it."""
    setup = Setup(plane=PlaneNeeds(alone=True))
    with Planes(folder) as planes, planes.of(setup.plane) as prepared:
        with running(prepared, folder / NAME, "array-kills", JOBS_BESIDE, setup) as target:
            began = time.monotonic()
            kills = _Kills(target, plan)
            with JobsClient(target.gateway_url, patience=PATIENCE_SECONDS) as client:
                client.submit_array(_submission(plan))
                kills.run()
                found = client.wait_for_array(NAME, END_SECONDS)
            seconds = time.monotonic() - began
            target.load.stop_submitting()
            target.until(lambda: not _chunks(target), "the chunks to be deleted", GONE_SECONDS)
            if not target.await_ends(PATIENCE_SECONDS):
                raise ChaosError("the jobs beside the array do not end")
            time.sleep(SETTLE_SECONDS)
            target.stop_recorder()
        items = judge_items(plan.items, _notes(target, BEGAN), _notes(target, DONE), kills.workers)
        outcomes = Outcomes()
        report = _audit(target, outcomes)
    wrong = [*_miscounted(found, plan.items), *items.wrong, *_violations(report)]
    wrong += [*_lost(target, outcomes), *kills.too_late]
    return KilledArray(items, report, seconds, kills.done, wrong)


def _submission(plan: ArrayPlan) -> ArraySubmission:
    return ArraySubmission(
        name=NAME,
        type=NOTED_ITEM,
        queue=QUEUE,
        items=ArrayItems(count=plan.items),
        payload={"seconds": plan.item_seconds},
        chunk_size=plan.chunk_size,
        parallelism=CHUNKS_AT_ONCE,
        lease_duration_seconds=LEASE_SECONDS,
        retry_policy={"max_crashes": 50, "initial_delay_seconds": 0.2},
    )


def _count_notes(target: FaultTarget, kind: str) -> int:
    """Return how many notes of a kind there are."""
    file = _notes_file(target, kind)
    return file.read_bytes().count(b"\n") if file.exists() else 0


def _notes(target: FaultTarget, kind: str) -> list[ItemNote]:
    return read_notes(_notes_file(target, kind).read_text(encoding="utf-8"))


def _notes_file(target: FaultTarget, kind: str) -> Path:
    return target.trace.with_name(target.trace.name + kind)


def _chunks(target: FaultTarget) -> Sequence[object]:
    path = collection_path(target.namespace, JOBS)
    found: Sequence[object] = target.api.get(path, labelSelector=ARRAY_LABEL, limit="1")["items"]
    return found


def _audit(target: FaultTarget, outcomes: Outcomes) -> HistoryReport:
    log, handlers = AuditLog(), HandlerRecord()
    for line in target.audit_events():
        log.add(orjson.loads(line))
    for file in target.handler_records:
        handlers.add_file(str(file))
    checker = HistoryChecker(CheckOptions(floors=RetentionFloors()), log, handlers)
    return checker.check(outcomes.seen(read_history(str(target.history))))


def _miscounted(found: ArrayInfo, count: int) -> Sequence[str]:
    counted = (found.phase, found.total, found.succeeded, found.failed)
    if counted == ("Succeeded", count, count, 0):
        return ()
    return (
        f"the array is {found.phase}: {found.succeeded} of {found.total} items are done, "
        f"{found.failed} have failed, and all {count} should be done",
    )


def _violations(report: HistoryReport) -> Sequence[str]:
    wrong = [f"{one.rule.id}: {one.subject.name}: {one.message}" for one in report.violations]
    if report.arrays != 1:
        wrong.append(f"the history has {report.arrays} arrays")
    if not report.complete:
        wrong.append("the recording is not complete")
    return wrong


def _lost(target: FaultTarget, outcomes: Outcomes) -> Sequence[str]:
    ends = {name: job.phase for name, job in outcomes.jobs.items()}
    return [
        f"job {one.name} beside the array is {ends.get(one.name, 'lost')}"
        for one in target.load.accepted
        if ends.get(one.name) != "Succeeded"
    ]


def lines_of(found: KilledArray, plan: ArrayPlan) -> list[str]:
    """Return what a run has come to, in words."""
    items, report = found.items, found.report
    return [
        f"{plan.items:,} items in {found.seconds:.0f} s, {len(found.kills)} processes killed",
        f"{items.done:,} items were done, {items.repeated:,} runs were a second one; "
        f"the worst kill had {items.worst:.2f} s of a worker's items run again",
        f"audit: {report.versions:,} versions of {report.jobs:,} jobs and {report.arrays} array, "
        f"{len(report.gaps)} gaps, {report.counts.total()} violations",
        *(found.wrong or ["each item counted once"]),
    ]


@click.command()
@click.option("--items", type=click.IntRange(1000), default=ITEMS, show_default=True)
@click.option("--rounds", type=click.IntRange(1), default=4, show_default=True, help="Of kills.")
@click.option("--keep", is_flag=True, help="Keep logs and history.")
def main(*, items: int, rounds: int, keep: bool) -> None:
    """Kill all that works at an array; exit 1 if an item is lost or counted twice."""
    folder = Path(tempfile.mkdtemp(prefix="asyncjob-array-kills-"))
    plan = ArrayPlan(items=items, rounds=rounds)
    found: KilledArray | None = None
    try:
        found = run_array(plan, folder)
    finally:
        if keep or found is None or found.wrong:
            click.echo(f"logs and history: {folder}", err=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    for line in lines_of(found, plan):
        click.echo(line)
    sys.exit(1 if found.wrong else 0)


def command() -> None:
    """Run, with foreseeable errors in a sentence."""
    try:
        with unwind_on_signals():
            main()
    except DevError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    command()
