"""Counts of what operator and worker execute and keep for one plain job.

The API server in between answers at once. The keys are those of `limits.toml`.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from types import SimpleNamespace
from typing import Any, Final, cast

import orjson
from prometheus_client import CollectorRegistry

from asyncjob.app.child_jobs import NoChildJobs
from asyncjob.kube import KubeSession, WatchEvent
from asyncjob.lifecycle.claim import Candidate
from asyncjob.lifecycle.job_view import JobView
from asyncjob.names import job_status_path
from asyncjob_bench.counting import job_states
from asyncjob_bench.counting.counters import blocks_kept, count_instructions
from asyncjob_bench.harness.handlers import NOTHING, app
from asyncjob_operator.cache.job_caches import JobCaches
from asyncjob_operator.cache.queue_stats import QueueStatsCollector
from asyncjob_operator.controllers.job_evaluator import JobEvaluator
from asyncjob_operator.controllers.workqueue import DelayingQueue, WorkQueue
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.options import DecisionOptions
from asyncjob_operator.kube.version_times import VersionTimes
from asyncjob_operator.telemetry.job_metrics import JobMetrics
from asyncjob_operator.telemetry.quarantine import Quarantine
from asyncjob_worker.claiming.backlog import Backlog
from asyncjob_worker.claiming.claimer import Claimer
from asyncjob_worker.claiming.job_rows import RowReader
from asyncjob_worker.claiming.queue_state import QueueState
from asyncjob_worker.clock import monotonic
from asyncjob_worker.execution.attempt import Attempt, AttemptServices
from asyncjob_worker.leases.heartbeat import TICK_SECONDS
from asyncjob_worker.leases.heartbeat_lag import HeartbeatLag
from asyncjob_worker.leases.outcome_writer import OutcomeWriter
from asyncjob_worker.leases.ownership import EnforcementCheck
from asyncjob_worker.leases.step_writer import StepWriter
from asyncjob_worker.settings import Settings

OPERATOR_JOBS: Final = 20
OPERATOR_WARM_UP: Final = 5
FIRST: Final = 1_000_000
"""Number of the first counted job; those that are there already have smaller ones."""

WALL: Final = 1_767_225_600.0


async def _never_park(_: object) -> bool:
    return False


class _NothingDue(WorkQueue):
    """The work queue of jobs that need no write of the operator's."""

    def add(self, key: str, lane: str = "") -> None:
        raise AssertionError(f"a plain job needs nothing done: {key} ({lane})")

    def discard(self, key: str) -> None:
        """Do nothing: no key is queued, and what the queue itself costs is not counted."""


def _no_admission(queue: tuple[str, str]) -> None:
    raise AssertionError(f"the queue has no limit: {queue}")


def _no_dead_letter(job: JobView, message: str) -> None:
    raise AssertionError(f"a plain job does not die: {job.name}: {message}")


def new_evaluator() -> JobEvaluator:
    """Return the part of a standby that takes in jobs: its metrics count nothing."""
    quarantine = Quarantine(lambda: 0.0, lambda _kind: None)
    delaying_queue = DelayingQueue()

    def now() -> Now:
        return Now(0.0, WALL)

    caches = JobCaches(
        now,
        VersionTimes(),
        enqueue_admission=_no_admission,
        evaluate_later=delaying_queue.add_all,
        evaluate_arrays_later=delaying_queue.add_all,
    )
    return JobEvaluator(
        caches,
        delaying_queue,
        _NothingDue(),
        on_dead_letter=_no_dead_letter,
        options=DecisionOptions(),
        now=now,
        queue_stats=QueueStatsCollector(
            caches.store, caches.queues, caches.worker_registry, now, quarantine
        ),
        quarantine=quarantine,
        metrics=JobMetrics(CollectorRegistry(), lambda: False, lambda: 0.0),
    )


def operator_instructions_per_job(known: int) -> float:
    """Return our own instructions for the three events of a job, beside so many that wait."""
    watching = new_evaluator()
    for number in range(known):
        watching.on_update(job_states.queued(number), just_changed=True)
    for number in range(FIRST - OPERATOR_WARM_UP, FIRST):
        for state in _job_events(number):
            watching.on_update(state, just_changed=True)
    seen = [
        state for number in range(FIRST, FIRST + OPERATOR_JOBS) for state in _job_events(number)
    ]
    with count_instructions() as count:
        for state in seen:
            watching.on_update(state, just_changed=True)
    return count.instructions / OPERATOR_JOBS


def _job_events(number: int) -> list[job_states.Object]:
    return [job_states.queued(number), job_states.claimed(number), job_states.completed(number)]


WORKER_JOBS: Final = 20
"""So many are counted, after a few that fill caches."""

WORKER_WARM_UP: Final = 5
LIMIT: Final = 100_000


class _Session:
    """Answers claims and reports; what it answers was made before anything is counted."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.access = SimpleNamespace(namespace=job_states.NAMESPACE)
        self._answers = answers

    async def get(self, path: str) -> Any:
        raise AssertionError(f"a plain job has its payload with it: {path}")

    async def merge_patch(self, path: str, body: Any, **_: Any) -> Any:
        orjson.dumps(body)
        return self._answers[path]

    async def json_patch(self, _path: str, body: Any, **_: Any) -> Any:
        orjson.dumps(body)
        return {}


class _Enforced:
    async def is_proven(self, _: Candidate) -> bool:
        return True


class WorkerPath:
    """The parts of a worker, wired as in its process, for jobs of the first so many numbers."""

    def __init__(self, jobs: int) -> None:
        paths = {
            n: job_status_path(job_states.NAMESPACE, job_states.name_of(n)) for n in range(jobs)
        }
        answers = {path: job_states.claimed(number) for number, path in paths.items()}
        session = cast("KubeSession", _Session(answers))
        settings = Settings(concurrency=1)
        queue = QueueState(lambda: None, on_unlimited=lambda: None)
        enforced = cast("EnforcementCheck", _Enforced())
        late = HeartbeatLag(TICK_SECONDS, monotonic)
        self._claimer = Claimer(session, app, queue, job_states.HOLDER, enforced, lag=late)
        self._reporter = OutcomeWriter(session, lambda _held, move, _error: move)
        self._settings = settings
        self._tools = AttemptServices.from_settings(
            settings,
            session.get,
            lambda _held: NoChildJobs(),
            record=None,
            step_writer=StepWriter(session),
            on_step_stored=lambda _type, _seconds: None,
            may_park=_never_park,
            server_time=lambda: WALL,
        )
        self._reader = RowReader()
        self.backlog = Backlog(takeover_delay=0.15, limit=LIMIT)

    def add_job(self, number: int) -> None:
        """Take in the row of a queued job."""
        line = orjson.loads(job_states.row_event(number))
        event = WatchEvent(line["type"], line["object"])
        candidate = self._reader.read(event.object, event.resource_version)
        assert candidate is not None
        self.backlog.put(candidate, float(number))

    async def run(self, number: int) -> None:
        """Choose, claim, run and report it."""
        candidate = self.backlog.pop(float(number) + 1)
        assert candidate is not None
        held = await self._claimer.claim(candidate)
        assert held is not None
        attempt = Attempt(
            held, app.handlers[NOTHING], app, self._settings, self._tools, on_start=lambda _: None
        )
        outcome = await attempt.run()
        assert outcome is not None
        assert await self._reporter.write(held, outcome) is outcome


def worker_instructions_per_job(waiting: int = 0) -> float:
    """Return our own instructions for one job, from the row to the stored outcome.

    So many others wait meanwhile.
    """
    return asyncio.run(_count(waiting))


async def _count(waiting: int) -> float:
    path = WorkerPath(waiting + WORKER_WARM_UP + WORKER_JOBS)
    numbers = iter(range(waiting + WORKER_WARM_UP + WORKER_JOBS))
    for number in islice(numbers, waiting):
        path.add_job(number)
    await _run_jobs(path, islice(numbers, WORKER_WARM_UP))
    with count_instructions() as count:
        await _run_jobs(path, numbers)
    return count.instructions / WORKER_JOBS


async def _run_jobs(path: WorkerPath, numbers: Iterable[int]) -> None:
    """See a job, and run the one that has waited longest, for each number."""
    for number in numbers:
        path.add_job(number)
        await path.run(number)


FEW: Final = 10
MANY: Final = 2000
BLOCKS_OF: Final = 1000


def worker_growth() -> float:
    """Return how many times more instructions a job takes the worker with a long backlog."""
    return worker_instructions_per_job(MANY) / worker_instructions_per_job()


def operator_growth() -> float:
    """Return how many times more instructions an event takes the operator with many jobs."""
    return operator_instructions_per_job(MANY) / operator_instructions_per_job(FEW)


def waiting_blocks() -> float:
    """Return what the operator keeps of a job that waits."""
    watching = new_evaluator()
    return blocks_kept(
        lambda number: watching.on_update(job_states.queued(number), just_changed=True), BLOCKS_OF
    )


def finished_blocks() -> float:
    """Return what the operator keeps of a finished job."""
    watching = new_evaluator()
    return blocks_kept(
        lambda number: watching.on_update(job_states.completed(number), just_changed=True),
        BLOCKS_OF,
    )


def backlog_blocks() -> float:
    """Return what a worker keeps of a job that it may claim."""
    return blocks_kept(WorkerPath(0).add_job, BLOCKS_OF)


COUNTS: Final[Mapping[str, Callable[[], float]]] = {
    "worker_instructions_per_job": worker_instructions_per_job,
    "worker_instructions_growth": worker_growth,
    "operator_instructions_per_job": lambda: operator_instructions_per_job(FEW),
    "operator_instructions_growth": operator_growth,
    "operator_blocks_per_waiting_job": waiting_blocks,
    "operator_blocks_per_finished_job": finished_blocks,
    "worker_blocks_per_backlog_job": backlog_blocks,
}
