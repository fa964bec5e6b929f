"""Scenarios in the fake cluster: each in one of its own, in milliseconds."""

from collections.abc import Sequence
from typing import Any

from asyncjob.json_types import JsonObject, child
from asyncjob.lifecycle.timestamps import add_seconds
from asyncjob.names import API_VERSION, JOB_KIND
from asyncjob.testing import FakeCluster
from contract.cluster import Condition, Obj
from contract.lives import Life, live
from contract.scenarios import SCENARIOS
from support.apps.contract import app


class FakeBackend:
    """One scenario's fake cluster."""

    def __init__(self, cluster: FakeCluster, name: str) -> None:
        self._cluster = cluster
        self._prefix = name
        self.queue = "own"

    async def create(self, name: str, type_: str, payload: Any = None, **spec: Any) -> None:
        given = {} if payload is None else {"payload": payload}
        manifest = {
            "apiVersion": API_VERSION,
            "kind": JOB_KIND,
            "metadata": {"name": f"{self._prefix}.{name}"},
            "spec": {"type": type_, **given, **spec},
        }
        await self._cluster.apply(manifest)

    async def change(self, name: str, **spec: Any) -> None:
        obj = await self.get(name)
        await self._cluster.apply({**obj, "spec": {**obj["spec"], **spec}})

    async def get(self, name: str) -> Obj:
        return dict(self._cluster.job(f"{self._prefix}.{name}").manifest)

    async def until(self, name: str, condition: Condition) -> Obj:
        job = self._cluster.job(f"{self._prefix}.{name}")
        await self._cluster.run_until(lambda: condition(dict(child(job.manifest, "status"))))
        return await self.get(name)

    async def crash_worker_of(self, name: str) -> None:
        await self._cluster.job(f"{self._prefix}.{name}").crash()

    async def drain_worker_of(self, name: str) -> None:
        await self._cluster.job(f"{self._prefix}.{name}").drain()

    def time(self, seconds: float) -> str:
        return add_seconds(self._cluster.clock.text, seconds)

    @property
    def versions(self) -> list[Sequence[JsonObject]]:
        """All versions of all jobs."""
        return [job.versions for job in self._cluster.jobs]


async def run_all() -> dict[str, Life]:
    """Run all scenarios, one after the other."""
    lives: dict[str, Life] = {}
    for name, scenario in SCENARIOS.items():
        async with FakeCluster(app) as cluster:
            backend = FakeBackend(cluster, name.replace("_", "-"))
            lives[name] = await live(scenario, backend)
            lives[name].versions = backend.versions
    return lives
