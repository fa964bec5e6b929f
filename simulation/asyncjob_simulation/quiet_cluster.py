"""A cluster in virtual time with one worker, in which nothing goes wrong but by the story."""

import asyncio
import gc
import random
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, Final
from unittest.mock import patch

import orjson

from asyncjob import WorkerApp
from asyncjob.names import API_VERSION, GROUP, JOBS, collection_path, job_path
from asyncjob_operator.core.options import DecisionOptions, RetentionOptions
from asyncjob_operator.settings import Settings as OperatorSettings
from asyncjob_simulation.actors import SimulatedHeartbeat, WorkerAccesses, run_operator, run_worker
from asyncjob_simulation.apiserver import Request, Response
from asyncjob_simulation.clocks import quiet, virtual_world
from asyncjob_simulation.cluster import NAMESPACE, OPERATOR, WORKER, Cluster, Replica, new_server
from asyncjob_simulation.dice import Dice, FaultChooser
from asyncjob_simulation.event_loop import FIRST_MOMENT, SimulationLoop
from asyncjob_simulation.handlers import HandlerCalls, make_app
from asyncjob_simulation.network import Network, Rates
from asyncjob_simulation.processes import Process
from asyncjob_simulation.story import Recorder
from asyncjob_worker import components
from asyncjob_worker.leases import heartbeat
from asyncjob_worker.settings import Settings as WorkerSettings

Object = dict[str, Any]

SLOTS: Final = 4
STEP_SECONDS: Final = 20.0
"""Virtual seconds in which operator and worker come to rest after a change."""
_PEOPLE: Final = "people"


class QuietCluster:
    """Operator, worker, and a person who writes; `run` plays a story.

    `app` makes the worker's app, that of all simulations if it is not given. Of several operators
    one leads. `wall_offset` is how far the clock of a pod is off, by its name.
    """

    def __init__(
        self,
        seed: int,
        app: Callable[[HandlerCalls], WorkerApp] = make_app,
        *,
        operators: int = 1,
        wall_offset: Callable[[str], float] = lambda _: 0.0,
    ) -> None:
        self._make_app = app
        self.dice = dice = Dice(seed)
        self.loop = loop = SimulationLoop(random.Random(f"turns/{seed}"))
        loop.set_exception_handler(lambda *_: None)  # the dead leave tasks behind
        recorder = Recorder(loop, keeps_lines=False)
        self.handlers = HandlerCalls(loop)
        self._seed = seed
        self._accesses = WorkerAccesses()
        self._processes: dict[str, Process] = {}
        chooser = FaultChooser(dice, frozenset())
        self.last_status: dict[str, Object] = {}
        """The status that each job was last given, by name."""

        self.written_jobs: set[str] = set()
        """The names of all jobs that were ever written: some are deleted as soon as they end."""

        server = new_server(loop, seed)
        network = Network(server, loop, chooser, recorder, Rates(), self._on_answer)
        network.is_faulty = False
        self.cluster = Cluster(loop, network, recorder, wall_offset, self._processes)
        names = ("operator", *(f"operator{number}" for number in range(2, operators + 1)))
        self.operators = [Replica(name, OPERATOR, self._run_operator) for name in names]

    def run(self, story: Callable[["QuietCluster"], Awaitable[Object]]) -> Object:
        """Play a story from the beginning, and return what it has come to."""
        with ExitStack() as stack:
            stack.enter_context(virtual_world(self.loop, self._seed))
            stack.enter_context(patch.object(heartbeat, "load_access", self._accesses.load))
            stack.enter_context(patch.object(components, "HeartbeatThread", SimulatedHeartbeat))
            try:
                return self.loop.run_until_complete(self._play(story))
            finally:
                for process in self._processes.values():
                    process.on_death.clear()
                    process.kill()
                self.loop.close()

    async def _play(self, story: Callable[["QuietCluster"], Awaitable[Object]]) -> Object:
        app = self._make_app(self.handlers)
        self.worker = Replica("worker", WORKER, partial(self._run_worker, app), "lived")
        for operator in self.operators:
            self.cluster.add(operator)
        self.cluster.add(self.worker)
        await asyncio.sleep(STEP_SECONDS)
        return await story(self)

    async def _run_operator(self, container: Any) -> int:
        settings = OperatorSettings(
            namespaces=(NAMESPACE,),
            identity=container.process.name,
            options=DecisionOptions(missing_dependency_timeout=60.0),
            retention_options=RetentionOptions(min_age=0),
            retention_interval=30.0,
            resync_interval=60.0,
            leader_elect=len(self.operators) > 1,
        )
        return await run_operator(container, settings)

    async def _run_worker(self, app: Any, container: Any) -> int:
        # Without an election there is no Lease in which the operator could say that it wakes jobs.
        settings = WorkerSettings(queue="lived", concurrency=SLOTS, park="always")
        return await run_worker(container, app, settings, self._accesses)

    def _on_answer(self, _: str, request: Request, response: Response) -> None:
        if request.method == "GET" or "/asyncjobs" not in request.path or response.status >= 300:  # noqa: PLR2004
            return
        obj = orjson.loads(response.body)
        if "name" not in obj.get("metadata", {}):
            return
        name = obj["metadata"]["name"]
        self.written_jobs.add(name)
        # A worker asks for answers without the status.
        stored = self.cluster.server.storage.get((GROUP, JOBS), (NAMESPACE, name)) or obj
        if "status" in stored:
            self.last_status[name] = stored["status"]

    def restart_operator(self) -> None:
        """Kill the operator; it is started again."""
        process = self.operators[0].process
        if process is not None:
            process.kill()

    def stop(self, replica: Replica) -> None:
        """Kill a replica; it is not started again."""
        process, replica.pod = replica.process, None
        if process is not None:
            process.kill()

    def start(self, replica: Replica) -> None:
        """Start a replica that was stopped."""
        self.cluster.replicas.remove(replica)
        self.cluster.add(replica)

    def until(self, moment: float) -> float:
        """Return the seconds until so long after the beginning."""
        return FIRST_MOMENT + moment - self.loop.time()

    def write(self, method: str, path: str, body: Object | None = None) -> Object | None:
        """Write as a person does; None if the API server refuses."""
        answer = self.cluster.write(_PEOPLE, method, path, body)
        return dict(orjson.loads(answer.body)) if answer.status < 400 else None  # noqa: PLR2004

    def put(self, kind: str, path: str, collection: str, name: str, spec: Object) -> bool:
        """Create an object, or give it another spec; returns whether that was taken."""
        body: Object = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}}
        body["spec"] = spec
        found = self.find(path)
        if found is None:
            return self.write("POST", collection_path(NAMESPACE, collection), body) is not None
        body["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
        return self.write("PUT", path, body) is not None

    def find(self, path: str) -> Object | None:
        """Return an object, or None."""
        return self.write("GET", path)

    def jobs(self) -> dict[str, Object]:
        """Return all jobs by name."""
        listed = self.write("GET", collection_path(NAMESPACE, JOBS)) or {"items": []}
        return {one["metadata"]["name"]: one for one in listed["items"]}

    def submit(self, name: str, kind: str = "work", **spec: Any) -> None:
        """Create a job of the queue."""
        body = {
            "apiVersion": API_VERSION,
            "kind": "AsyncJob",
            "metadata": {"name": name},
            "spec": {"type": kind, "queue": "lived", "payload": work(), **spec},
        }
        self.write("POST", collection_path(NAMESPACE, JOBS), body)

    def delete_jobs(self) -> None:
        """Delete all jobs."""
        for name in self.jobs():
            self.write("DELETE", job_path(NAMESPACE, name))


def play(
    seed: int,
    story: Callable[[QuietCluster], Awaitable[Object]],
    app: Callable[[HandlerCalls], WorkerApp] = make_app,
) -> Object:
    """Play a story in a cluster of its own, and return what it has come to."""
    # As in `simulate`: what the dead have left is freed in here, and not to be heard of.
    with patch.object(sys, "unraisablehook", lambda _: None):
        cluster = QuietCluster(seed, app)
        end = cluster.run(story)
        with quiet():
            del cluster
            gc.collect()
    return end


def work(pause: float = 2.0, failures: int = 0) -> Object:
    """Return the payload of a job."""
    return {"steps": 1, "pause": pause, "failures": failures}
