"""Operators that look after one schedule on one store, stepped request by request.

The parts under test are the real ones; only the API server and the clocks are stood in for. A
request takes effect when the test says so, and its answer arrives when the test says so. What the
store grants them is what is promised: a creation lands within its time limit or not at all.
"""

import asyncio
import copy
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast

from asyncjob.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ObjectNotFoundError,
    UnknownOutcomeError,
)
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.job_view import read_job
from asyncjob.names import JOBS, collection_path, cron_job_path
from asyncjob_operator.cache.scheduled_jobs import ScheduledJobCache
from asyncjob_operator.controllers.cron_job_evaluator import CronJobEvaluator
from asyncjob_operator.controllers.cron_job_reconciler import CronJobReconciler
from asyncjob_operator.controllers.events import EventRecorder
from asyncjob_operator.controllers.workqueue import DelayingQueue, ItemBackoff
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.schedules.reservation import REQUEST_TIMEOUT_SECONDS
from asyncjob_operator.core.schedules.view import read_cron_job
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from support.schedules import raw_cron, seconds
from support.vitals import quarantine

UID = "uid-nightly"
PATH = cron_job_path("ns", "nightly")
JOBS_PATH = collection_path("ns", JOBS)
FINISHED = {"Succeeded", "DeadLetter", "Cancelled"}

Object = dict[str, Any]


@dataclass
class CronJobStore:
    """The store, true time, and what has ever been created."""

    cron: Object
    now: float = seconds("2026-11-20T03:00")
    jobs: dict[str, Object] = field(default_factory=dict)
    created: list[str] = field(default_factory=list)
    overlaps: list[str] = field(default_factory=list)
    version: int = 100

    def stamped(self, obj: Object) -> Object:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        return copy.deepcopy(obj)

    @property
    def live(self) -> list[str]:
        """Names of the unfinished jobs."""
        return [name for name, job in self.jobs.items() if job["status"]["phase"] not in FINISHED]

    @property
    def reserved(self) -> set[str]:
        """Names of the reserved runs."""
        return {run.name for run in read_cron_job(self.cron).runs}

    def create(self, body: Object) -> Object:
        name = body["metadata"]["name"]
        if name in self.jobs:
            raise AlreadyExistsError(status=409)
        if self.live:
            self.overlaps.append(name)
        self.created.append(name)
        job = copy.deepcopy(body)
        job["metadata"] |= {
            "uid": f"uid-{len(self.created)}",
            "creationTimestamp": "2026-11-20T03:00:00Z",
        }
        job["status"] = {"phase": "Queued"}
        self.jobs[name] = job
        return self.stamped(job)

    def patch_status(self, body: Object) -> Object:
        if body["metadata"]["resourceVersion"] != self.cron["metadata"]["resourceVersion"]:
            raise ConflictError(status=409)
        before = read_cron_job(self.cron)
        self.cron["status"] = merged(self.cron["status"], body["status"])
        assert read_cron_job(self.cron).settled_time >= before.settled_time, (
            "refused by cron.settled"
        )
        return self.stamped(self.cron)

    def cancel(self, name: str) -> Object:
        if name not in self.jobs:
            raise ObjectNotFoundError(status=404)
        self.jobs[name]["spec"]["cancel"] = True
        return self.stamped(self.jobs[name])

    def delete(self, name: str) -> Object:
        if name not in self.jobs:
            raise ObjectNotFoundError(status=404)
        return self.jobs.pop(name)

    def finish(self, name: str) -> None:
        """Let a job end."""
        job = self.jobs[name]
        phase = "Cancelled" if job["spec"].get("cancel") else "Succeeded"
        job["status"] = {"phase": phase, "completionTime": "2026-11-20T03:00:01Z"}
        self.stamped(job)


def merged(target: Any, patch: Any) -> Any:
    """Return the target with a merge-patch applied."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


class Session:
    """One operator's requests: each waits at a gate before it takes effect, and at one after."""

    def __init__(self, store: CronJobStore) -> None:
        self.store = store
        self.gate: asyncio.Future[None] | None = None
        self.sent_at: float | None = None
        """When the creation was sent that has yet to take effect."""

    async def _request(self, effect: Any) -> Any:
        await self._wait()
        try:
            answer: Any = effect()
        except ApiError as error:
            answer = error
        await self._wait()
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def _wait(self) -> None:
        self.gate = asyncio.get_running_loop().create_future()
        await self.gate

    async def get(self, path: str, _params: Any = None) -> Object:
        def read() -> Object:
            found = (
                self.store.cron if path == PATH else self.store.jobs.get(path.rpartition("/")[2])
            )
            if found is None:
                raise ObjectNotFoundError(status=404)
            return copy.deepcopy(found)

        return cast("Object", await self._request(read))

    async def list(self, _path: str, _params: Any = None) -> AsyncIterator[Object]:
        def read() -> list[Object]:
            return [copy.deepcopy(self.store.jobs[name]) for name in self.store.live]

        for obj in await self._request(read):
            yield obj

    async def create(self, _path: str, body: Object, _params: Any = None) -> Object:
        self.sent_at = self.store.now

        def post() -> Object:
            sent_at, self.sent_at = self.sent_at, None
            if sent_at is None or self.store.now - sent_at > REQUEST_TIMEOUT_SECONDS:
                raise UnknownOutcomeError
            return self.store.create(body)

        return cast("Object", await self._request(post))

    async def merge_patch(self, path: str, body: Object, _params: Any = None) -> Object:
        if path.startswith(PATH):
            return cast("Object", await self._request(lambda: self.store.patch_status(body)))
        name = path.rpartition("/")[2]
        return cast("Object", await self._request(lambda: self.store.cancel(name)))

    async def delete(self, path: str, _body: Any = None) -> Object:
        name = path.rpartition("/")[2]
        return cast("Object", await self._request(lambda: self.store.delete(name)))


class Replica:
    """One operator process; its monotonic clock began anywhere, its wall clock may be wrong."""

    def __init__(self, store: CronJobStore, name: str, *, skew: float = 0.0) -> None:
        self.store, self.skew, self.offset = store, skew, 7.0 * len(name)
        self.session = Session(store)
        self.wanted = False
        self.task: asyncio.Task[None] | None = None
        metrics = OperatorMetrics()
        session = cast("KubeSession", self.session)
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
        self.children.on_update(read_job(obj), obj, self.moment().wall)

    def watch(self) -> None:
        """Take in what there is now."""
        for child in self.children.jobs_of(("ns", UID)):
            if self.store.jobs.get(child.name, {}).get("metadata", {}).get("uid") != child.uid:
                self.children.on_delete(child.uid)
        for job in self.store.jobs.values():
            self._saw_job(copy.deepcopy(job))
        self.schedules.on_update(copy.deepcopy(self.store.cron))

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
        elif self.session.gate and not self.session.gate.done():
            self.session.gate.set_result(None)
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
        for _ in range(4):
            await asyncio.sleep(0)

    async def crash(self) -> None:
        """Die; what was sent may still be under way, and then never arrives."""
        if self.task and not self.task.done():
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)


def store_of(**spec: Any) -> CronJobStore:
    """Return a store with one schedule, hourly, that is due at the beginning."""
    cron = raw_cron(**{"misfirePolicy": "FireAll", "misfireLimit": 5, **spec})
    cron["status"] |= {"settledTime": "2026-11-20T01:00:00Z"}
    return CronJobStore(cron)
