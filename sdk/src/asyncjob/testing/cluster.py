"""`FakeCluster`: a whole app without a cluster.

Jobs in memory, one worker, the operator's part, a fake clock.

Handlers run for real, and their outcomes are decided by the functions that workers decide with;
what the operator would decide is in `fake_operator`. There is no network, no lease that expires, no
second worker, no retention and no queue with limits.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

from asyncjob.app import WorkerApp
from asyncjob.app.resource_lifecycle import open_resources
from asyncjob.free_json import MAX_STORED_BYTES
from asyncjob.json_types import JsonObject, child, text
from asyncjob.names import ARRAY_KIND, CRON_JOB_KIND, JOB_KIND, QUEUE_KIND
from asyncjob.testing.array import FakeArray
from asyncjob.testing.arrays.array_store import FakeArrayStore
from asyncjob.testing.attempt import FakeAttemptServices
from asyncjob.testing.clock import DEFAULT_START, FakeClock, skip_sleeps
from asyncjob.testing.errors import NotFakedError, StuckError, TestKitError
from asyncjob.testing.job import FakeJob
from asyncjob.testing.manifests import (
    Manifest,
    build_array_manifest,
    build_job_manifest,
    invalid_error,
    parse_documents,
    read_array_manifest,
    read_job_manifest,
)
from asyncjob.testing.simulator import RunningAttempts, Simulator
from asyncjob.testing.store import FakeJobStore, JobRecord, QueueStore


class FakeCluster:
    """Runs an app's jobs; an async context manager. Nothing runs but while the test waits for it.

    `resources` are given to handlers, by type, instead of what the app declares; of that the rest
    that handlers, or those of the given `types`, need is opened for real. `concurrency` handlers
    run at a time. `draw`, from 0 to 1, decides the jitter of every retry; 0.5 means none.
    `patience` is how many real seconds a handler may take without sleeping, reporting or ending.
    A result or checkpoint of more than `max_bytes` is refused.
    """

    def __init__(
        self,
        app: WorkerApp,
        *,
        resources: Mapping[Any, object] | None = None,
        types: Collection[str] | None = None,
        namespace: str = "default",
        concurrency: int = 10,
        start: datetime = DEFAULT_START,
        draw: float = 0.5,
        patience: float = 5.0,
        max_bytes: int = MAX_STORED_BYTES,
    ) -> None:
        self.holds_for_children = False
        self.skips_waits = False
        self.clock = FakeClock(start, on_timer=self._on_timer)
        self._app = app
        self._overrides = dict(resources or {})
        self._concurrency = concurrency
        self._draw, self._patience, self._max_bytes = draw, patience, max_bytes
        self._job_numbers = itertools.count(1)
        self._queues = QueueStore()
        self._array_numbers = itertools.count(1)
        self._store = FakeJobStore(self.clock, namespace)
        self._arrays = FakeArrayStore(self._store, namespace)
        self._running = False
        self._simulator: Simulator | None = None
        self._types = types
        self._stack = contextlib.AsyncExitStack()

    def _on_timer(self) -> None:
        self._running_attempts.wake()

    async def __aenter__(self) -> Self:
        self._running_attempts = RunningAttempts(self._patience)
        opening = open_resources(
            self._app, overrides=self._overrides, types=self._needed_resource_types()
        )
        services = FakeAttemptServices(
            self._app,
            self.clock,
            self._store,
            self._arrays,
            await self._stack.enter_async_context(opening),
            self._running_attempts.wake,
            self._draw,
            self._max_bytes,
            self.holds_for_children,
            self.skips_waits,
        )
        self._simulator = Simulator(
            services, self._queues, self._arrays, self._running_attempts, self._concurrency
        )
        self._stack.enter_context(skip_sleeps())
        return self

    @property
    def simulator(self) -> Simulator:
        """What runs its jobs; raises TestKitError outside the `async with` block."""
        if self._simulator is None:
            raise TestKitError("enter the cluster first: `async with FakeCluster(app) as cluster:`")
        return self._simulator

    def _needed_resource_types(self) -> Collection[Any]:
        """Return the types of resources that handlers need, and their middleware."""
        types = self._app.handlers if self._types is None else self._types
        handlers = [self._app.handlers[type_] for type_ in types]
        layers = [layer for one in handlers for layer in self._app.middleware_of(one)]
        needs = [*(one.needs for one in handlers), *(layer.needs for layer in layers)]
        return {need.type for each in needs for need in each.values()}

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self.simulator.close(self._patience)
        finally:
            await self._stack.aclose()

    # ---- objects

    async def submit(
        self, type_: str, payload: object = None, *, name: str | None = None, **options: object
    ) -> FakeJob:
        """Create a job.

        `options` are fields of its spec in Python's spelling (`queue`, `priority`, `not_before`,
        `execution_timeout_seconds` or short `timeout`, `retry_policy` or short `retry`, …), times
        as datetime or text, `depends_on` as names of jobs or as dependencies. Raises what `apply`
        does, and TypeError for an unknown option.
        """
        given = name or f"job-{next(self._job_numbers)}"
        return self._create(build_job_manifest(given, type_, payload, options))

    async def submit_array(
        self,
        type_: str,
        items: int | Iterable[object],
        payload: object = None,
        *,
        name: str | None = None,
        **options: object,
    ) -> FakeArray:
        """Create an array of a number of items, or of a list of them.

        `type_` is that of the item handler, `payload` is what all items share. `options` are fields
        of its spec in Python's spelling (`chunk_size`, `parallelism`, `max_failed`, …); `retry`,
        `timeout` and `item_timeout` are short, as in clients. Raises what `apply` does, and
        TypeError for an unknown option.
        """
        given = name or f"array-{next(self._array_numbers)}"
        return self._create_array(build_array_manifest(given, type_, items, payload, options))

    async def apply(self, manifest: Manifest) -> list[FakeJob]:
        """Create or change what the manifest holds, as `kubectl apply` does; returns its jobs.

        Takes AsyncJobs, AsyncArrays and AsyncQueues as mapping, model or YAML. Raises InvalidError
        for what the API server refuses, NotFakedError for what the fake cluster does not implement.
        """
        jobs = [self._apply(document) for document in parse_documents(manifest)]
        return [job for job in jobs if job is not None]

    def create_with_status(self, manifest: JsonObject, status: JsonObject) -> FakeJob:
        """Create a queued job that has a past: `status` holds the fields that tell of it."""
        spec = read_job_manifest(manifest)
        return self._to_fake_job(self._store.create(child(manifest, "metadata"), spec, status))

    def job(self, name: str) -> FakeJob:
        """Return a job; raises NotFoundError."""
        return self._to_fake_job(self._store.get(name))

    @property
    def jobs(self) -> Sequence[FakeJob]:
        """All jobs, in the order of their creation; the chunks of arrays are among them."""
        return [self._to_fake_job(record) for record in self._store]

    def array(self, name: str) -> FakeArray:
        """Return an array; raises NotFoundError."""
        return FakeArray(self.simulator, self._arrays.get(name))

    @property
    def arrays(self) -> Sequence[FakeArray]:
        """All arrays, in the order of their creation."""
        return [FakeArray(self.simulator, record) for record in self._arrays]

    # ---- time

    async def run_until_idle(self) -> None:
        """Run until nothing happens any more without somebody doing something.

        Backoffs, start times and sleeping handlers are skipped. Raises StuckError for a handler
        that waits for something else than time.
        """
        await self._run(lambda: False, until=None)

    async def run_until(self, condition: Callable[[], object]) -> None:
        """Run until the condition holds; it is looked at after each single change of any job.

        A handler is then where it was: at the report that made the condition true. Raises
        StuckError if the condition does not hold though nothing happens any more.
        """
        await self._run(condition, until=None)
        if not condition():
            raise StuckError(
                "the condition does not hold, and nothing more will happen; " + str(self.jobs)
            )

    async def advance(self, seconds: float | timedelta) -> None:
        """Let this much time pass, and all that it brings happen."""
        passed = seconds.total_seconds() if isinstance(seconds, timedelta) else seconds
        until = self.clock.elapsed + passed
        await self._run(lambda: False, until=until)
        self.clock.move_to(until)

    async def _run(self, condition: Callable[[], object], *, until: float | None) -> None:
        if self._running:
            raise TestKitError("the cluster runs already: wait for that first")
        self._running = True
        try:
            await self._run_steps(condition, until)
        finally:
            self._running = False

    async def _run_steps(self, condition: Callable[[], object], until: float | None) -> None:
        while not condition():
            if self.simulator.step():
                await asyncio.sleep(0)  # a handler that begins gets to its first await
                continue
            if await self._running_attempts.run_handlers(lenient=until is not None):
                continue
            due_at = self.simulator.due_at()
            if due_at is None or (until is not None and due_at > until):
                return
            self.clock.move_to(due_at)

    # ---- how it is done

    def _apply(self, document: JsonObject) -> FakeJob | None:
        kind = text(document, "kind")
        if kind == QUEUE_KIND:
            self._queues.apply(document)
            return None
        if kind == ARRAY_KIND:
            self._apply_array(document)
            return None
        if kind == CRON_JOB_KIND:
            raise NotFakedError("the fake cluster has no cron jobs: submit the jobs yourself")
        if kind != JOB_KIND:
            known = f"{JOB_KIND}, {ARRAY_KIND} and {QUEUE_KIND}"
            raise invalid_error(f"kind {kind!r} is none of {known}")
        name = text(child(document, "metadata"), "name")
        if name not in self._store:
            return self._create(document)
        record = self._store.get(name)
        self.simulator.change_spec(record, read_job_manifest(document, exists=True))
        return self._to_fake_job(record)

    def _apply_array(self, document: JsonObject) -> None:
        name = text(child(document, "metadata"), "name")
        if name not in self._arrays:
            self._create_array(document)
            return
        spec = read_array_manifest(document, exists=True)
        self._arrays.change_spec(self._arrays.get(name), spec)

    def _create_array(self, document: JsonObject) -> FakeArray:
        spec = read_array_manifest(document)
        record = self._arrays.create(child(document, "metadata"), spec)
        return FakeArray(self.simulator, record)

    def _create(self, document: JsonObject) -> FakeJob:
        spec = read_job_manifest(document)
        return self._to_fake_job(self._store.create(child(document, "metadata"), spec))

    def _to_fake_job(self, record: JobRecord) -> FakeJob:
        return FakeJob(self.simulator, record)
