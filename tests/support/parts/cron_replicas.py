"""Operators that look after one cron job on one store, stepped request by request.

The parts under test are the real ones, on the API server in memory; the clocks are in the test's
hands. A request takes effect when the test says so, and its answer arrives when the test says so.
What the store grants them is what is promised: a creation lands within its time limit or not at
all.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from asyncjob.errors import ApiError, InvalidError, UnknownOutcomeError
from asyncjob.lifecycle.job_view import read_job
from asyncjob.names import JOBS, collection_path, cron_job_path, job_path
from asyncjob_operator.cache.scheduled_jobs import ScheduledJobCache
from asyncjob_operator.controllers.cron_job_evaluator import CronJobEvaluator
from asyncjob_operator.controllers.cron_job_reconciler import CronJobReconciler
from asyncjob_operator.controllers.events import EventRecorder
from asyncjob_operator.controllers.workqueue import DelayingQueue, ItemBackoff
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.schedules.reservation import REQUEST_TIMEOUT_SECONDS
from asyncjob_operator.core.schedules.view import read_cron_job
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from support.in_memory.fake_session import FakeSession, operator_cluster
from support.in_memory.memory import Stored
from support.objects.schedules import raw_cron, seconds
from support.parts.vitals import quarantine

UID = "uid-nightly"
PATH = cron_job_path("ns", "nightly")
JOBS_PATH = collection_path("ns", JOBS)
FINISHED = {"Succeeded", "DeadLetter", "Cancelled"}
MAX_TURNS = 1000
"""Turns of the event loop, of which a request in memory takes a few."""

Object = dict[str, Any]
T = TypeVar("T")


class CronJobStore:
    """The API server in memory, true time, and what has ever been created there."""

    def __init__(self, cron: Object) -> None:
        self.now = seconds("2026-11-20T03:00")
        self.created: list[str] = []
        self.overlaps: list[str] = []
        self.server = operator_cluster(lambda: self.now)
        self._objects = Stored(self.server)
        self._objects[PATH] = cron

    @property
    def cron(self) -> Object:
        """The cron job."""
        return self._objects[PATH]

    @property
    def jobs(self) -> dict[str, Object]:
        """All jobs by name."""
        jobs = [obj for path, obj in self._objects.items() if path.startswith(JOBS_PATH)]
        return {job["metadata"]["name"]: job for job in jobs}

    @property
    def live(self) -> list[str]:
        """Names of the unfinished jobs."""
        return [name for name, job in self.jobs.items() if job["status"]["phase"] not in FINISHED]

    @property
    def reserved(self) -> set[str]:
        """Names of the reserved runs."""
        return {run.name for run in read_cron_job(self.cron).runs}

    def trigger(self) -> None:
        """Let a person ask for a run."""
        cron = self.cron
        spec = {**cron["spec"], "trigger": cron["spec"].get("trigger", 0) + 1}
        self._objects[PATH] = {**cron, "spec": spec}

    def delete(self, name: str) -> None:
        """Let a job be gone."""
        del self._objects[job_path("ns", name)]

    def finish(self, name: str) -> None:
        """Let a job end."""
        job = self.jobs[name]
        phase = "Cancelled" if job["spec"].get("cancel") else "Succeeded"
        status = {"phase": phase, "completionTime": "2026-11-20T03:00:01Z"}
        self._objects[job_path("ns", name)] = {**job, "status": status}


class GatedSession(FakeSession):
    """One operator's requests: each waits at a gate before it takes effect, and at one after."""

    def __init__(self, store: CronJobStore) -> None:
        super().__init__(server=store.server)
        self.store = store
        self.gate: asyncio.Future[None] | None = None
        self.sent_at: float | None = None
        """When the creation was sent that has yet to take effect."""

    @property
    def waits(self) -> bool:
        """Whether a request is at a gate."""
        return self.gate is not None and not self.gate.done()

    async def get(self, path: str, params: Any = None) -> Any:
        return await self._request(lambda: super(GatedSession, self).get(path, params))

    async def pages(
        self, path: str, params: Any = None, *, accept: str = "application/json"
    ) -> AsyncIterator[Any]:
        await self._wait()
        pages = [page async for page in super().pages(path, params, accept=accept)]
        await self._wait()
        for page in pages:
            yield page

    async def create(self, path: str, body: Any, params: Any = None) -> Any:
        self.sent_at = self.store.now

        async def effect() -> Any:
            sent_at, self.sent_at = self.sent_at, None
            if sent_at is None or self.store.now - sent_at > REQUEST_TIMEOUT_SECONDS:
                raise UnknownOutcomeError
            live = self.store.live
            answer = await super(GatedSession, self).create(path, body, params)
            self.store.created.append(body["metadata"]["name"])
            self.store.overlaps += [body["metadata"]["name"]] if live else []
            return answer

        return await self._request(effect)

    async def merge_patch(self, path: str, body: Any, params: Any = None, **more: Any) -> Any:
        async def effect() -> Any:
            try:
                return await super(GatedSession, self).merge_patch(path, body, params, **more)
            except InvalidError as error:
                raise AssertionError(f"refused by a rule: {error}") from error

        return await self._request(effect)

    async def delete(self, path: str, body: Any = None) -> Any:
        return await self._request(lambda: super(GatedSession, self).delete(path, body))

    async def _request(self, effect: Callable[[], Awaitable[T]]) -> T:
        await self._wait()
        try:
            answer = await effect()
        except ApiError:
            await self._wait()
            raise
        await self._wait()
        return answer

    async def _wait(self) -> None:
        self.gate = asyncio.get_running_loop().create_future()
        await self.gate


class Replica:
    """One operator process; its monotonic clock began anywhere, its wall clock may be wrong."""

    def __init__(self, store: CronJobStore, name: str, *, skew: float = 0.0) -> None:
        self.store, self.skew, self.offset = store, skew, 7.0 * len(name)
        self.session = session = GatedSession(store)
        self.wanted = False
        self.task: asyncio.Task[None] | None = None
        metrics = OperatorMetrics()
        self.children, self.delaying_queue = ScheduledJobCache(), DelayingQueue()
        self.schedules = CronJobEvaluator(
            name,
            self.children,
            self.moment,
            self._want,
            delaying_queue=self.delaying_queue,
            quarantine=quarantine(),
        )
        self.actor = CronJobReconciler(
            session,
            self.schedules,
            backoff=ItemBackoff(0.001, 0.002),
            events=EventRecorder(session, name, self.moment, metrics, quarantine()),
            metrics=metrics,
            leads=lambda: True,
            on_job=self._saw_job,
            clock=lambda: self.moment().monotonic,
        )
        self.watch()

    def moment(self) -> Now:
        """Return this moment by its own clocks."""
        return Now(self.store.now + self.offset, self.store.now + self.skew)

    def _want(self, _uid: str) -> None:
        self.wanted = True

    def _saw_job(self, obj: Any) -> None:
        self.children.on_update(read_job(obj), obj, lambda _: self.moment().wall)

    def watch(self) -> None:
        """Take in what there is now."""
        jobs = self.store.jobs
        for child in self.children.jobs_of(("ns", UID)):
            if jobs.get(child.name, {}).get("metadata", {}).get("uid") != child.uid:
                self.children.on_delete(child.uid)
        for job in jobs.values():
            self._saw_job(job)
        self.schedules.on_update(self.store.cron)

    async def step(self) -> None:
        """Take one step: begin to act, or let the request under way go one gate further."""
        if self.task is None or self.task.done():
            if self.task:
                self.task.result()
            self.wanted = False
            self.delaying_queue.pop_due(float("inf"), 10)
            self.schedules.evaluate(UID)
            if self.wanted:
                self.task = asyncio.create_task(self.actor.reconcile(UID))
        elif self.session.gate and self.session.waits:
            self.session.gate.set_result(None)
            self.session.gate = None
        await self.settle()

    @property
    def idle(self) -> bool:
        """Whether nothing is under way."""
        return self.task is None or self.task.done()

    async def run(self, most: int = 60) -> None:
        """Take in what there is, and act until there is nothing more to do."""
        for _ in range(most):
            if self.idle:
                self.watch()
                await self.step()
                if self.idle:
                    return
            await self.step()

    async def settle(self) -> None:
        """Let it go on until it waits for the test again."""
        for _ in range(MAX_TURNS):
            if self.idle or self.session.waits:
                return
            await asyncio.sleep(0)
        raise AssertionError("it waits for something that is not in memory")

    async def crash(self) -> None:
        """Die; what was sent may still be under way, and then never arrives."""
        if self.task and not self.task.done():
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)


def store_of(**spec: Any) -> CronJobStore:
    """Return a store with one cron job, hourly, that is due at the beginning."""
    cron = raw_cron(**{"misfirePolicy": "FireAll", "misfireLimit": 5, **spec})
    cron["status"] |= {"settledTime": "2026-11-20T01:00:00Z"}
    return CronJobStore(cron)
