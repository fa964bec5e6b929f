"""The product's processes as containers run them: operator, worker and gateway."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from asyncjob.app import WorkerApp
from asyncjob.errors import ApiError, AsyncJobError, ExpiredError
from asyncjob.json_types import as_object, child, items, text
from asyncjob.kube import KubeSession
from asyncjob.kube.pacing import ExponentialBackoff
from asyncjob.kube.watch import watch
from asyncjob.names import ARRAYS, CRON_JOBS, collection_path
from asyncjob.rest.submission import Submission, Submitted
from asyncjob_gateway.auth.rights import Right
from asyncjob_gateway.cache.namespace import NamespaceCache
from asyncjob_gateway.operations import Operations
from asyncjob_gateway.server import API_SERVER_CONNECTIONS, FIELD_MANAGER
from asyncjob_gateway.telemetry import GatewayMetrics
from asyncjob_operator.cache.job_caches import JobCaches
from asyncjob_operator.kube.kopf_session import KopfSession, WatchedCollection
from asyncjob_operator.operator import Operator
from asyncjob_operator.process import OperatorRuntime
from asyncjob_operator.settings import Settings as OperatorSettings
from asyncjob_simulation.cluster import NAMESPACE, Container
from asyncjob_simulation.processes import HEARTBEAT, Process, current_process
from asyncjob_worker.cli import SPARE_CONNECTIONS, WorkerExitCode
from asyncjob_worker.leases.heartbeat import HeartbeatThread
from asyncjob_worker.metrics import Metrics
from asyncjob_worker.settings import Settings as WorkerSettings
from asyncjob_worker.settings import identify
from asyncjob_worker.tracing import NO_TRACING
from asyncjob_worker.worker import Worker

# ---- operator


class KopfWatches:
    """Stands in for kopf, which watches queues and cron jobs for the operator.

    kopf's own engine is not part of the simulation. As it does, this lists, then watches, lists
    again after a 410, and tells nothing of what was deleted between two lists.
    """

    def __init__(self, session: KubeSession) -> None:
        self._session = session
        self._tasks: list[asyncio.Task[None]] = []

    def follow(
        self, listener: Operator, resources: tuple[str, ...], namespaces: tuple[str | None, ...]
    ) -> None:
        """Begin to watch."""
        for resource in resources:
            for namespace in namespaces:
                watched = WatchedCollection(resource, namespace)
                self._tasks.append(asyncio.ensure_future(self._run(listener, watched)))

    async def close(self) -> None:
        """Watch no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._session.close()

    async def _run(self, listener: Operator, watched: WatchedCollection) -> None:
        backoff, listed_before = ExponentialBackoff(1.0, 10.0), False
        path = collection_path(watched.namespace, watched.resource)
        version = ""
        while True:
            try:
                if not version:
                    version = await self._list(listener, watched, path, again=listed_before)
                    listed_before = True
                async for event in watch(self._session, path, {"resourceVersion": version}):
                    version = event.resource_version or version
                    listener.on_watch_progress(watched)
                    backoff.reset()
                    if event.type != "BOOKMARK":
                        _handler(listener, watched)(event.type, event.object)
            except ExpiredError:
                version = ""
            except ApiError:
                await asyncio.sleep(backoff.next_delay())

    async def _list(
        self, listener: Operator, watched: WatchedCollection, path: str, *, again: bool
    ) -> str:
        version = ""
        async for page in self._session.pages(path):
            version = text(child(page, "metadata"), "resourceVersion")
            listener.on_watch_progress(watched)
            for item in items(page, "items"):
                _handler(listener, watched)(None, as_object(item))
        if again:
            listener.on_relist(watched)
        return version


def _handler(listener: Operator, watched: WatchedCollection) -> Callable[[str | None, Any], None]:
    if watched.resource == CRON_JOBS:
        return listener.on_cron_job_event
    if watched.resource == ARRAYS:
        return listener.on_array_event
    return listener.on_queue_event


async def run_operator(
    container: Container,
    settings: OperatorSettings,
    on_start: Callable[[JobCaches], None] = lambda _: None,
) -> int:
    """Run an operator as kopf would; `on_start` is given what it knows."""
    runtime = OperatorRuntime(container.access, settings)
    kopf = KopfWatches(KubeSession(container.access, field_manager="asyncjob-operator"))
    runtime.kopf_session = cast("KopfSession", kopf)
    stop = asyncio.Event()
    container.on_terminate = stop.set
    await runtime.start()
    on_start(runtime.operator._components.caches)  # noqa: SLF001  # there to be judged
    await stop.wait()
    await runtime.stop()
    return 0


# ---- worker


class SimulatedHeartbeat(HeartbeatThread):
    """The heartbeat thread as a second thread of the simulated process."""

    def start(self) -> None:
        """Start the thread."""
        process = current_process()
        assert process is not None  # only workers have one
        self._process = process
        self._task = process.spawn(self._keep_running(), HEARTBEAT)

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return not self._task.done()

    def stop(self) -> None:
        """Stop the thread."""
        self._stopping.set()

    async def _keep_running(self) -> None:
        backoff = ExponentialBackoff(initial=0.5, cap=5.0)
        while not self._stopping.is_set():
            try:
                await self._run()
            except Exception:  # noqa: BLE001  # as the thread itself does
                await asyncio.sleep(backoff.next_delay())


@dataclass
class WorkerAccesses:
    """The access of each worker process, for its heartbeat thread, which loads its own."""

    by_process: dict[Process, Container] = field(default_factory=dict)

    async def load(self, *_: object) -> Any:
        """Stand in for `load_access`."""
        process = current_process()
        return self.by_process[cast("Process", process)].access


async def run_worker(
    container: Container, app: WorkerApp, settings: WorkerSettings, accesses: WorkerAccesses
) -> int:
    """Run a worker as its command does."""
    accesses.by_process[container.process] = container
    holder = identify(container.pod.name, container.pod.uid)
    async with KubeSession(
        container.access,
        field_manager="asyncjob-worker",
        connections=settings.slots() + SPARE_CONNECTIONS,
    ) as session:
        worker = Worker(app, settings, session, holder, metrics=Metrics(), tracing=NO_TRACING)

        def terminate() -> None:
            container.is_asked_to_end = not worker.is_draining
            worker.stop()

        container.on_terminate = terminate
        return WorkerExitCode.STOPPED if await worker.run() else WorkerExitCode.RESTART


# ---- gateway


@dataclass(eq=False)
class Gateway:
    """A gateway's way of submitting: its operations on its caches, without HTTP in front."""

    operations: Operations | None = None
    caches: dict[str, NamespaceCache] = field(default_factory=dict)
    """What its process knows, by the name of that."""

    async def run(self, container: Container) -> int:
        """Keep the caches up to date until SIGTERM."""
        metrics = GatewayMetrics()
        async with KubeSession(
            container.access, field_manager=FIELD_MANAGER, connections=API_SERVER_CONNECTIONS
        ) as session:
            cache = NamespaceCache(NAMESPACE)
            self.operations = Operations(session, cache, metrics, _allow)
            self.caches[container.process.name] = cache
            container.process.on_death.append(self._forget)
            stop = asyncio.Event()
            container.on_terminate = stop.set
            keeping = asyncio.ensure_future(cache.run(session, metrics.watch_observer))
            await stop.wait()
            self._forget()
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
        return 0

    def _forget(self) -> None:
        self.operations = None
        self.caches.clear()

    def submit(
        self, process: Process, submission: Submission
    ) -> "asyncio.Task[Submitted | AsyncJobError]":
        """Send a submission through the gateway's process."""
        return process.spawn(self._submit(submission))

    async def _submit(self, submission: Submission) -> Submitted | AsyncJobError:
        if self.operations is None:
            return AsyncJobError("the gateway is not there")
        try:
            return await self.operations.submit(submission)
        except AsyncJobError as error:
            return error

    def signal(
        self, process: Process, job: str, name: str, payload: str, sender: str
    ) -> "asyncio.Task[str | AsyncJobError]":
        """Send a signal through the gateway's process; gives the job's UID."""
        return process.spawn(self._signal(job, name, payload, sender))

    async def _signal(self, job: str, name: str, payload: str, sender: str) -> str | AsyncJobError:
        if self.operations is None:
            return AsyncJobError("the gateway is not there")
        try:
            told = await self.operations.signal(job, name, payload, sender=sender, uid=None)
        except AsyncJobError as error:
            return error
        return told.uid


async def _allow(_: Right) -> None:
    """Let callers do everything: their rights are no part of the simulation."""
