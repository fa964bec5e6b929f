"""Scenarios on a real control plane, with real operator and workers: all at the same time."""

import asyncio
import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from asyncjob.client.errors import JobStateError
from asyncjob.client.kubernetes.client import AsyncKubernetesJobsClient
from asyncjob.kube.transport import error_from_response
from asyncjob.names import (
    API_VERSION,
    ARRAY_LABEL,
    ARRAYS,
    JOB_KIND,
    JOBS,
    array_path,
    collection_path,
    job_path,
)
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.supervisor import DevWorker
from contract.cluster import Condition, Obj, array_manifest
from contract.lives import Life, live
from contract.scenarios import CRASHING, SCENARIOS
from support.cluster.api import Answer, Client
from support.cluster.installation import install
from support.driven.jobs import now
from support.processes.operator import OperatorProcess
from support.processes.workers import WorkerNamespace, worker_namespace

APP = "support.apps.contract:app"
OPERATOR = ("--no-retention", "--backoff-initial=0.2", "--backoff-max=2")
LOOK_SECONDS = 0.15
WITHIN_SECONDS = 60.0


class SharedNamespace:
    """The namespace that all scenarios share; looks at all its jobs and arrays at once."""

    def __init__(self, ns: WorkerNamespace, client: Client) -> None:
        self.ns = ns
        self.client = client
        self.workers: dict[str, DevWorker] = {}
        self._seen: dict[str, dict[str, Obj]] = {JOBS: {}, ARRAYS: {}}
        self._looked = asyncio.Condition()

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Obj:
        """Send a request; raises the SDK's error for a refusal."""
        answer: Answer = await asyncio.to_thread(self.client.request, method, path, body, **more)
        if not answer.accepted:
            raise error_from_response(answer.status, json.dumps(answer.body).encode())
        return answer.body

    async def watch(self) -> None:
        """Look at all jobs and arrays until cancelled."""
        while True:
            for kind, seen in self._seen.items():
                found = await self.ask("GET", collection_path(self.ns.namespace, kind))
                seen.clear()
                seen.update({one["metadata"]["name"]: one for one in found["items"]})
            async with self._looked:
                self._looked.notify_all()
            await asyncio.sleep(LOOK_SECONDS)

    async def until(self, kind: str, name: str, condition: Condition) -> Obj:
        """Return the job or array once the condition holds for its status."""
        found = self._seen[kind]

        def holds() -> bool:
            return name in found and bool(condition(found[name]["status"]))

        try:
            async with asyncio.timeout(WITHIN_SECONDS), self._looked:
                await self._looked.wait_for(holds)
        except TimeoutError:
            raise AssertionError(f"it does not come: {found.get(name)}") from None
        return found[name]

    def start(self, name: str, *options: str, restart: bool = False) -> None:
        """Start a worker."""
        # They may not see the Lease of the operator, which is in another namespace.
        worker = self.ns.start_worker(name, "--park=always", *options, app=APP, restart=restart)
        self.workers[name] = worker

    def started(self) -> None:
        """Wait until all workers work."""
        for worker in self.workers.values():
            self.ns.until_log(worker, "worker started", within=60)


class RealBackend:
    """One scenario's jobs in the shared namespace."""

    def __init__(self, shared: SharedNamespace, name: str, number: int) -> None:
        self._shared = shared
        self._prefix = name
        self.queue = f"own-{number}"

    def full_name(self, name: str) -> str:
        return f"{self._prefix}.{name}"

    async def create(self, name: str, type_: str, payload: Any = None, **spec: Any) -> None:
        given = {} if payload is None else {"payload": payload}
        body = {
            "apiVersion": API_VERSION,
            "kind": JOB_KIND,
            "metadata": {"name": self.full_name(name)},
            "spec": {"type": type_, **given, **spec},
        }
        await self._shared.ask("POST", collection_path(self._shared.ns.namespace, JOBS), body)

    async def change(self, name: str, **spec: Any) -> None:
        body, kind = {"spec": spec}, "application/merge-patch+json"
        await self._shared.ask("PATCH", self._path(name), body, content_type=kind)

    async def tell(self, name: str, signal: str, payload: Any) -> bool:
        plane, place = self._shared.ns.plane, self._shared.ns.namespace
        jobs = await AsyncKubernetesJobsClient.connect(str(plane.kubeconfig), place)
        try:
            async with jobs:
                await jobs.signal(self.full_name(name), signal, payload)
        except JobStateError:
            return False
        return True

    async def get(self, name: str) -> Obj:
        return await self._shared.ask("GET", self._path(name))

    async def until(self, name: str, condition: Condition) -> Obj:
        return await self._shared.until(JOBS, self.full_name(name), condition)

    async def create_array(self, name: str, type_: str, items: Any, **spec: Any) -> None:
        path = collection_path(self._shared.ns.namespace, ARRAYS)
        body = array_manifest(self.full_name(name), type_, items, spec)
        await self._shared.ask("POST", path, body)

    async def change_array(self, name: str, **spec: Any) -> None:
        path = array_path(self._shared.ns.namespace, self.full_name(name))
        kind = "application/merge-patch+json"
        await self._shared.ask("PATCH", path, {"spec": spec}, content_type=kind)

    async def until_array(self, name: str, condition: Condition) -> Obj:
        return await self._shared.until(ARRAYS, self.full_name(name), condition)

    async def chunks_of(self, name: str) -> list[Obj]:
        place, full = self._shared.ns.namespace, self.full_name(name)
        array = await self._shared.ask("GET", array_path(place, full))
        label = f"{ARRAY_LABEL}={array['metadata']['uid']}"
        path = f"{collection_path(place, JOBS)}?labelSelector={label}"
        found: list[Obj] = (await self._shared.ask("GET", path))["items"]
        return found

    async def crash_worker_of(self, name: str) -> None:
        (await self._worker_of(name)).kill()

    async def drain_worker_of(self, name: str) -> None:
        worker = await self._worker_of(name)
        worker.terminate()
        options = (f"--queue={self.queue}",)
        await asyncio.to_thread(self._shared.start, f"{worker.name}-next", *options)

    def time(self, seconds: float) -> str:
        return now(seconds)

    async def _worker_of(self, name: str) -> DevWorker:
        lease: Mapping[str, str] = (await self.get(name))["status"]["lease"]
        return self._shared.workers[lease["holder"]]

    def _path(self, name: str) -> str:
        return job_path(self._shared.ns.namespace, self.full_name(name))


@contextlib.contextmanager
def prepared_namespace(folder: Path) -> Iterator[WorkerNamespace]:
    """Run a control plane with an operator and prepare a namespace on it."""
    with ControlPlane() as plane:
        install(plane)
        log = folder / "operator.log"
        with (
            OperatorProcess(plane.kubeconfig, log, *OPERATOR) as operator,
            worker_namespace(plane, folder) as ns,
        ):
            operator.until_ready().until_leading()
            yield ns


async def run_all(ns: WorkerNamespace) -> dict[str, Life]:
    """Run all scenarios at the same time."""
    plane = ns.plane
    strict = (("fieldValidation", "Strict"),)
    place = SharedNamespace(ns, Client(plane.url, plane.ca_file, plane.admin_token, strict))
    numbers = {name: number for number, name in enumerate(SCENARIOS)}
    place.start("worker-main", f"--concurrency={len(SCENARIOS)}")
    for name in CRASHING:
        queue = f"--queue=own-{numbers[name]}"
        place.start(f"worker-{numbers[name]}", queue, "--grace=0", restart=True)
    await asyncio.to_thread(place.started)
    watch = asyncio.create_task(place.watch())
    begun = time.monotonic()
    try:
        lives = await asyncio.gather(
            *(
                live(scenario, RealBackend(place, name.replace("_", "-"), numbers[name]))
                for name, scenario in SCENARIOS.items()
            )
        )
    finally:
        watch.cancel()
    print(f"{len(lives)} scenarios in {time.monotonic() - begun:.1f} s")  # noqa: T201  # for -s
    return dict(zip(SCENARIOS, lives, strict=True))
