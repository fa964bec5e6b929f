"""What a worker executes and keeps for one plain job, with an API server that answers at once."""

import asyncio
from collections.abc import Iterable, Mapping
from itertools import islice
from types import SimpleNamespace
from typing import Any, Final, cast

import orjson

from asyncjob.kube import KubeSession, WatchEvent
from asyncjob.lifecycle.claim import Candidate
from asyncjob.names import job_status_path
from asyncjob_bench.counting import lives
from asyncjob_bench.counting.instructions import count_instructions
from asyncjob_bench.ground.handlers import NOTHING, app
from asyncjob_worker.attempt import Attempt, AttemptServices
from asyncjob_worker.backlog import Backlog
from asyncjob_worker.claimer import Claimer
from asyncjob_worker.clock import awake_seconds
from asyncjob_worker.enforcement import EnforcementCheck
from asyncjob_worker.keeper import TICK_SECONDS
from asyncjob_worker.lateness import Lateness
from asyncjob_worker.queue_view import QueueState
from asyncjob_worker.reporter import OutcomeWriter
from asyncjob_worker.rows import RowReader
from asyncjob_worker.settings import Settings

WORKER_JOBS: Final = 20
"""So many are counted, after a few that fill caches."""

WORKER_WARM_UP: Final = 5
LIMIT: Final = 100_000


class _Session:
    """Answers claims and reports; what it answers was made before anything is counted."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.access = SimpleNamespace(namespace=lives.NAMESPACE)
        self._answers = answers

    async def merge_patch(self, path: str, body: Any) -> Any:
        orjson.dumps(body)
        return self._answers[path]

    async def json_patch(self, _path: str, body: Any) -> Any:
        orjson.dumps(body)
        return {}


class _Enforced:
    async def is_proven(self, _: Candidate) -> bool:
        return True


class WorkerPath:
    """The parts of a worker, wired as in its process, for jobs of the first so many numbers."""

    def __init__(self, jobs: int) -> None:
        paths = {n: job_status_path(lives.NAMESPACE, lives.name_of(n)) for n in range(jobs)}
        answers = {path: lives.claimed(number) for number, path in paths.items()}
        session = cast("KubeSession", _Session(answers))
        settings = Settings(concurrency=1)
        queue = QueueState(lambda: None)
        enforced = cast("EnforcementCheck", _Enforced())
        late = Lateness(TICK_SECONDS, awake_seconds)
        self._claimer = Claimer(session, app, queue, lives.HOLDER, enforced, lateness=late)
        self._reporter = OutcomeWriter(session, lambda _held, move, _error: move)
        self._settings, self._tools = settings, AttemptServices.from_settings(settings)
        self._reader = RowReader()
        self.backlog = Backlog(takeover_delay=0.15, limit=LIMIT)

    def add_job(self, number: int) -> None:
        """Take in the row of a queued job."""
        line = orjson.loads(lives.row_event(number))
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
        attempt = Attempt(held, app.handlers[NOTHING], app, self._settings, self._tools)
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
