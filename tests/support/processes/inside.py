"""Workers inside the test's own process, so that their sessions can be made to fail."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from asyncjob import WorkerApp
from asyncjob.errors import UnknownOutcomeError
from asyncjob.json_types import JsonObject
from asyncjob.kube import ClusterAccess, KubeSession, load_access
from asyncjob_worker.metrics import Metrics
from asyncjob_worker.settings import Settings
from asyncjob_worker.tracing import NO_TRACING
from asyncjob_worker.worker import Worker
from support.processes.workers import Identity, WorkerNamespace

MANAGER = "asyncjob-worker"
Opener = Callable[[ClusterAccess], KubeSession]


def plain(access: ClusterAccess) -> KubeSession:
    """Open an ordinary session."""
    return KubeSession(access, field_manager=MANAGER)


class LossySession(KubeSession):
    """Loses the answer of the first `lose` patches that take effect, chosen by `when`."""

    def __init__(
        self, access: ClusterAccess, *, lose: int, when: Callable[[Any], bool] = lambda _: True
    ) -> None:
        super().__init__(access, field_manager=MANAGER)
        self.left = lose
        self.patches = 0
        self._when = when

    async def merge_patch(
        self, path: str, body: Any, params: Any = None, **more: Any
    ) -> JsonObject:
        return self._maybe_lose(body, path, await super().merge_patch(path, body, params, **more))

    async def json_patch(self, path: str, operations: Any, **more: Any) -> JsonObject:
        answer = await super().json_patch(path, operations, **more)
        return self._maybe_lose(operations, path, answer)

    def _maybe_lose(self, body: Any, path: str, answer: JsonObject) -> JsonObject:
        if not path.endswith("/status"):
            return answer
        self.patches += 1
        if self.left and self._when(body):
            self.left -= 1
            raise UnknownOutcomeError("the answer got lost on its way")
        return answer


class Team:
    """Workers inside this process."""

    def __init__(self, workers: Sequence[Worker], running: Sequence[asyncio.Future[bool]]) -> None:
        self.workers = workers
        self.running = running

    @property
    def won(self) -> int:
        """Claims won so far."""
        return sum(worker._components.claimer.counts.won for worker in self.workers)

    @property
    def conflicts(self) -> int:
        """Claims lost so far."""
        return sum(worker._components.claimer.counts.conflicts for worker in self.workers)

    async def until_idle(self) -> None:
        """Wait until nobody runs or reports anything."""
        await _until(lambda: not any(worker._components.runner.running for worker in self.workers))

    async def until_acquainted(self) -> None:
        """Wait until all know of all."""
        everyone = len(self.workers)
        await _until(
            lambda: all(
                len(worker._components.live_workers.live) == everyone for worker in self.workers
            )
        )


async def _until(probe: Callable[[], bool]) -> None:
    while not probe():  # noqa: ASYNC110  # of what another event loop or thread changes
        await asyncio.sleep(0.01)


@asynccontextmanager
async def team(
    app: WorkerApp,
    identities: Sequence[Identity],
    *,
    opener: Opener = plain,
    **settings: Any,
) -> AsyncIterator[Team]:
    """Run one worker per identity; they are stopped in good order at the end."""
    async with AsyncExitStack() as stack:
        workers = []
        for identity in identities:
            access = await load_access(str(identity.kubeconfig))
            session = await stack.enter_async_context(opener(access))
            workers.append(
                Worker(
                    app,
                    Settings(**settings),
                    session,
                    identity.holder,
                    metrics=Metrics(),
                    tracing=NO_TRACING,
                )
            )
        running = [asyncio.ensure_future(worker.run()) for worker in workers]
        try:
            yield Team(workers, running)
        finally:
            for worker in workers:
                worker.stop()
            await asyncio.gather(*running)


async def all_done(ns: WorkerNamespace, names: Sequence[str], within: float = 60.0) -> list[Any]:
    """Return the statuses once all these jobs are finished."""
    async with asyncio.timeout(within):
        while True:
            listed = await asyncio.to_thread(ns.jobs)
            found = [job["status"] for job in listed if job["metadata"]["name"] in names]
            if len(found) == len(names) and all("completionTime" in each for each in found):
                return found
            await asyncio.sleep(0.2)
