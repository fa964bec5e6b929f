"""Scenarios in the fake cluster: each in one of its own, in milliseconds."""

from collections.abc import Sequence
from typing import Any

from asyncjob.errors import InvalidError
from asyncjob.json_types import JsonObject, child
from asyncjob.lifecycle.timestamps import add_seconds
from asyncjob.names import API_VERSION, JOB_KIND
from asyncjob.testing import FakeCluster
from contract.cluster import Condition, Obj, array_manifest
from contract.lives import Life, live
from contract.scenarios import SCENARIOS
from support.apps.contract import app


class FakeBackend:
    """One scenario's fake cluster."""

    def __init__(self, cluster: FakeCluster, name: str) -> None:
        self._cluster = cluster
        self._prefix = name
        self.queue = "own"

    def full_name(self, name: str) -> str:
        return f"{self._prefix}.{name}"

    async def create(self, name: str, type_: str, payload: Any = None, **spec: Any) -> None:
        given = {} if payload is None else {"payload": payload}
        manifest = {
            "apiVersion": API_VERSION,
            "kind": JOB_KIND,
            "metadata": {"name": self.full_name(name)},
            "spec": {"type": type_, **given, **spec},
        }
        await self._cluster.apply(manifest)

    async def change(self, name: str, **spec: Any) -> None:
        obj = await self.get(name)
        await self._cluster.apply({**obj, "spec": {**obj["spec"], **spec}})

    async def tell(self, name: str, signal: str, payload: Any) -> bool:
        try:
            await self._cluster.job(self.full_name(name)).signal(signal, payload)
        except InvalidError:
            return False
        return True

    async def get(self, name: str) -> Obj:
        return dict(self._cluster.job(self.full_name(name)).manifest)

    async def until(self, name: str, condition: Condition) -> Obj:
        job = self._cluster.job(self.full_name(name))
        await self._cluster.run_until(lambda: condition(dict(child(job.manifest, "status"))))
        return await self.get(name)

    async def create_array(self, name: str, type_: str, items: Any, **spec: Any) -> None:
        await self._cluster.apply(array_manifest(self.full_name(name), type_, items, spec))

    async def change_array(self, name: str, **spec: Any) -> None:
        obj = self._cluster.array(self.full_name(name)).manifest
        await self._cluster.apply({**obj, "spec": {**child(obj, "spec"), **spec}})

    async def until_array(self, name: str, condition: Condition) -> Obj:
        array = self._cluster.array(self.full_name(name))
        await self._cluster.run_until(lambda: condition(dict(child(array.manifest, "status"))))
        return dict(array.manifest)

    async def chunks_of(self, name: str) -> list[Obj]:
        chunks = self._cluster.array(self.full_name(name)).chunks
        return [dict(one.manifest) for one in chunks]

    async def crash_worker_of(self, name: str) -> None:
        await self._cluster.job(self.full_name(name)).crash()

    async def drain_worker_of(self, name: str) -> None:
        await self._cluster.job(self.full_name(name)).drain()

    def time(self, seconds: float) -> str:
        return add_seconds(self._cluster.clock.text, seconds)

    @property
    def array_versions(self) -> list[Sequence[JsonObject]]:
        """All versions of all arrays."""
        return [array.versions for array in self._cluster.arrays]

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
            lives[name].array_versions = backend.array_versions
    return lives
