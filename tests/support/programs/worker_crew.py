"""Many workers in one process, each with a pod of its own.

The first line on stdin is the order. To each further line a line of counts is the answer.
"""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from typing import Any
from unittest.mock import patch

import structlog
import uvloop

from asyncjob import WorkerApp
from asyncjob.kube import KubeSession, load_access
from asyncjob.metrics import worker as specs
from asyncjob_worker.claiming import shard_watches
from asyncjob_worker.leases import registration
from asyncjob_worker.metrics import Metrics
from asyncjob_worker.settings import Settings, identify
from asyncjob_worker.tracing import tracing_of
from asyncjob_worker.worker import Worker

COUNTED = {
    "events": (specs.JOB_EVENTS, {}),
    "won": (specs.CLAIMS, {"outcome": "won"}),
    "conflicts": (specs.CLAIMS, {"outcome": "conflict"}),
    "finished": (specs.FINISHED, {}),
}


def make_app(types: list[str]) -> WorkerApp:
    """Return an app whose handlers of all types do nothing for as long as the payload says."""
    app = WorkerApp()

    async def nap(job: Any, payload: float | None) -> None:
        await asyncio.sleep(payload or 0)

    for type_ in types:
        app.handler(type_)(nap)
    return app


class Crew:
    """The workers of one process."""

    def __init__(self) -> None:
        self._metrics: list[Metrics] = []
        self._tasks: list[asyncio.Task[bool]] = []

    async def start(self, order: dict[str, Any], stack: AsyncExitStack) -> None:
        """Start a worker for each pod of the order."""
        settings = Settings(**order["settings"])
        for pod, uid, kubeconfig in order["pods"]:
            metrics = Metrics()
            access = await load_access(kubeconfig)
            session = KubeSession(access, field_manager="asyncjob-worker", observer=metrics.request)
            await stack.enter_async_context(session)
            worker = Worker(
                make_app(order["types"]),
                settings,
                session,
                identify(pod, uid),
                metrics=metrics,
                tracing=tracing_of({}),
            )
            self._metrics.append(metrics)
            self._tasks.append(asyncio.ensure_future(worker.run()))

    def counts(self) -> dict[str, float]:
        """Return sums over all workers."""
        for task in self._tasks:
            if task.done():
                task.result()
        found: dict[str, float] = dict.fromkeys(COUNTED, 0)
        found |= {"own": 0, "deputy": 0}
        for metrics in self._metrics:
            families = {family.name: family for family in metrics.registry.collect()}
            for sample in families[specs.SHARDS.name].samples:
                found[sample.labels["part"]] += sample.value
            for name, (spec, labels) in COUNTED.items():
                found[name] += sum(
                    sample.value
                    for sample in families[spec.name].samples
                    if sample.name.endswith("_total") and labels.items() <= sample.labels.items()
                )
        return found


def behave_as_before_shards() -> None:
    """Register as workers did that knew of no shards, and watch all jobs however many there are."""
    patch.object(registration, "SHARDS", 0).start()
    patch.object(shard_watches, "MIN_PEERS", sys.maxsize).start()


async def main() -> None:
    """Run the workers until stdin ends."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        crew = Crew()
        order = json.loads(sys.stdin.readline())
        if order["earlier"]:
            behave_as_before_shards()
        await crew.start(order, stack)
        while await loop.run_in_executor(None, sys.stdin.readline):
            sys.stdout.write(f"{json.dumps(crew.counts())}\n")
            sys.stdout.flush()
    raise SystemExit


if __name__ == "__main__":
    uvloop.run(main())
