"""A whole operator on a fake API server, with a clock and workers in the test's hands.

Two harnesses of one session are two operators of one cluster.
"""

from typing import Any, cast

from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.names import (
    ARRAY_KIND,
    ARRAY_LABEL,
    JOB_KIND,
    PARENT_LABEL,
    array_path,
    job_path,
)
from asyncjob_operator.components import cache_updates
from asyncjob_operator.controllers.array_evaluator import ArrayEvaluator
from asyncjob_operator.controllers.array_reconciler import ArrayReconciler
from asyncjob_operator.controllers.events import EventRecorder
from asyncjob_operator.controllers.job_reconciler import JobReconciler
from asyncjob_operator.controllers.preconditions import PreconditionChecker
from asyncjob_operator.controllers.workqueue import DelayingQueue, ItemBackoff
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.options import DecisionOptions
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from support.in_memory.fake_session import FakeSession, Object
from support.objects.snapshots import at, raw, running, stamp
from support.parts.array_world import raw_array
from support.parts.callbacks import ignore
from support.parts.evaluation import evaluation
from support.parts.vitals import quarantine

STEPS = 5000
FINISHED = frozenset({"Succeeded", "DeadLetter", "Cancelled"})


class OperatorHarness:
    """Jobs by name. What the server stores the operator sees, unless it is `blind`."""

    def __init__(
        self, options: DecisionOptions | None = None, session: FakeSession | None = None
    ) -> None:
        self.session, self.now, self.blind = session or FakeSession(), 0.0, False
        self.metrics = OperatorMetrics()
        self._created_arrays = set[str]()
        self._options = options or DecisionOptions()
        self.restart()

    def restart(self) -> None:
        """Let a new operator begin, that has seen nothing yet."""
        session = cast("KubeSession", self.session)
        self.array_queue = DelayingQueue()
        self._wanted_arrays = set[str]()
        made = self._made = evaluation(
            self.moment, options=self._options, evaluate_arrays_later=self.array_queue.add_all
        )
        self.caches = made.caches
        self.delaying_queue, self.queue_stats = made.delaying_queue, made.queue_stats
        self.observer = observer = made.evaluator
        self.arrays = ArrayEvaluator(
            "me",
            self.caches,
            self.moment,
            self._wanted_arrays.add,
            delaying_queue=self.array_queue,
            quarantine=quarantine(),
            missing_timeout=self._options.missing_dependency_timeout,
        )
        updates = cache_updates(self.caches, observer, self.arrays.on_update, self.arrays.on_delete)
        preconditions = PreconditionChecker(session, updates, lambda: self.now)
        events = EventRecorder(session, "me", self.moment, self.metrics, quarantine())
        self._array_actor = ArrayReconciler(
            session,
            self.arrays,
            preconditions=preconditions,
            backoff=ItemBackoff(1.0, 60.0),
            events=events,
            metrics=self.metrics,
            leads=lambda: True,
            on_job=lambda obj: observer.on_update(obj, just_changed=True),
            on_job_gone=observer.on_delete,
            clock=lambda: self.now,
        )
        self._actor = JobReconciler(
            session,
            observer,
            preconditions=preconditions,
            backoff=ItemBackoff(1.0, 60.0),
            events=events,
            metrics=self.metrics,
            leads=lambda: True,
            on_recovered=ignore,
            now=self.moment,
        )
        for obj in self.session.objects.values():
            if obj["kind"] == JOB_KIND:
                observer.on_update(obj, just_changed=False)

    def list_arrays(self) -> None:
        """Let the operator list all arrays, as it does after the jobs."""
        for obj in self.session.objects.values():
            if obj["kind"] == ARRAY_KIND:
                self.arrays.on_update(obj)
        self.arrays.on_listed(None)

    def moment(self) -> Now:
        """Return now."""
        return at(self.now)

    # ---- what people and workers do

    def create(self, name: str, *needs: Any, parent: str = "", **spec: Any) -> None:
        """Create a job; `needs` are names or entries of dependsOn, `parent` is a name."""
        entries = [{"name": need} if isinstance(need, str) else need for need in needs]
        obj: Any = raw(name, spec={**({"dependsOn": entries} if entries else {}), **spec})
        if parent:
            obj["metadata"]["labels"] = {PARENT_LABEL: f"uid-{parent}"}
        self.store(name, obj)

    def change_spec(self, name: str, **controls: Any) -> None:
        """Change what a user may change."""
        obj = self.get(name)
        self.store(name, {**obj, "spec": {**obj["spec"], **controls}})

    def store(self, name: str, obj: Object) -> None:
        """Store a job as it is to be, past all rules."""
        stored: JsonObject = self.session.put(job_path("ns", name), obj)
        if not self.blind:
            self.observer.on_update(stored, just_changed=True)

    def store_array(self, name: str, phase: str, parent: str = "", **status: Any) -> None:
        """Store an array as it is to be; the operator leaves it as it is."""
        obj = raw_array(name)
        obj["metadata"] |= {"uid": f"uid-{name}", "labels": {PARENT_LABEL: f"uid-{parent}"}}
        obj["status"] = {"phase": phase, **status}
        self._put_array(name, obj)

    def create_array(self, name: str, *needs: Any, **spec: Any) -> None:
        """Create an array of two items; `needs` are names of jobs or entries of dependsOn."""
        entries = [{"name": need} if isinstance(need, str) else need for need in needs]
        waits = {"dependsOn": entries} if entries else {}
        obj = raw_array(name, items={"count": 2}, **waits, **spec)
        obj["metadata"]["uid"] = f"uid-{name}"
        self._created_arrays.add(f"ns/uid-{name}")
        self._put_array(name, obj)

    def ask_array(self, name: str, **controls: Any) -> None:
        """Change what a user may change of an array."""
        obj = self.get_array(name)
        self._put_array(name, {**obj, "spec": {**obj["spec"], **controls}})

    def get_array(self, name: str) -> Object:
        """Return an array as the server has it."""
        return self.session.objects[array_path("ns", name)]

    def _put_array(self, name: str, obj: Object) -> None:
        stored = self.session.put(array_path("ns", name), obj)
        if not self.blind:
            self.arrays.on_update(stored)

    def chunks(self) -> list[str]:
        """Return the names of the chunks that exist."""
        jobs = [obj for obj in self.session.objects.values() if obj["kind"] == JOB_KIND]
        return [
            obj["metadata"]["name"]
            for obj in jobs
            if ARRAY_LABEL in obj["metadata"].get("labels", {})
        ]

    def array_state(self, name: str) -> str:
        """Return phase, reason and message of an array in a line."""
        status = self.get_array(name)["status"]
        words = (status.get(field, "") for field in ("phase", "reason", "message"))
        return " ".join(filter(None, words))

    def delete_array(self, name: str) -> None:
        """Delete an array."""
        del self.session.objects[array_path("ns", name)]
        if not self.blind:
            self.arrays.on_delete(("ns", name))

    def delete(self, name: str) -> None:
        """Delete a job."""
        del self.session.objects[job_path("ns", name)]
        if not self.blind:
            self.observer.on_delete(f"uid-{name}")

    def claimable(self) -> list[str]:
        """Return the jobs that the API server would let a worker claim, in order of their names."""
        jobs = [obj for obj in self.session.objects.values() if obj["kind"] == JOB_KIND]
        names = sorted(obj["metadata"]["name"] for obj in jobs)
        return [name for name in names if self._is_claimable(self.get(name))]

    def start(self, name: str) -> None:
        """Claim a job."""
        assert name in self.claimable(), self.status(name)
        status = {**self.status(name), **running(), "phase": "Running"}
        status["attempt"] = self.status(name).get("attempt", 0) + 1
        for field in ("reason", "message"):
            status.pop(field, None)
        self.store(name, {**self.get(name), "status": status})

    def end(self, name: str, phase: str = "Succeeded", reason: str = "") -> None:
        """End a job, which is claimed first if it is not running."""
        if self.status(name)["phase"] != "Running":
            self.start(name)
        dropped = {"lease", "admitted"}
        status = {key: value for key, value in self.status(name).items() if key not in dropped}
        why = {"reason": reason} if reason else {}
        ended = {**status, "phase": phase, "completionTime": stamp(self.now), **why}
        self.store(name, {**self.get(name), "status": ended})

    # ---- what becomes of it

    async def settle(self) -> None:
        """Let the operator act until it has nothing more to do for now."""
        for _ in range(STEPS):
            if not self._made.queued and not await self._settle_arrays():
                return
            for uid in list(self._made.queued)[:1]:
                await self.act(uid)
        raise AssertionError(f"never settles: {self._made.queued}")

    async def _settle_arrays(self) -> bool:
        """Let the operator act on created arrays for which something is due; False if for none."""
        for key in self.array_queue.pop_due(self.now, STEPS):
            self.arrays.evaluate(key)
        wanted = sorted(self._wanted_arrays & self._created_arrays)
        self._wanted_arrays.clear()
        for key in wanted:
            await self._array_actor.reconcile(key)
            self.arrays.evaluate(key)
        return bool(wanted)

    async def act(self, uid: str) -> None:
        """Let the operator act on one job, if it has anything to do about it."""
        if uid in self._made.queued:
            self._made.job_queue.discard(uid)
            await self._actor.reconcile(uid)
            self.observer.evaluate(uid)

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, and the operator act on what that brings."""
        self.now += seconds
        for uid in self.delaying_queue.pop_due(self.now, STEPS):
            self.observer.evaluate(uid)
        await self.settle()

    def get(self, name: str) -> Object:
        """Return a job as the server has it."""
        return self.session.objects[job_path("ns", name)]

    def status(self, name: str) -> Object:
        """Return the status of a job."""
        status: Object = self.get(name)["status"]
        return status

    def is_finished(self, name: str) -> bool:
        """Return whether a job has ended."""
        return self.status(name)["phase"] in FINISHED

    def state(self, name: str) -> str:
        """Return phase, reason and message of a job in a line."""
        status = self.status(name)
        words = (status.get(field, "") for field in ("phase", "reason", "message"))
        return " ".join(filter(None, words))

    def _is_claimable(self, obj: Object) -> bool:
        spec, status = obj["spec"], obj["status"]
        gates = ("dependsOn", "deduplicationId", "suspend", "cancel")
        free = not any(spec.get(gate) for gate in gates)
        return status["phase"] == "Queued" and (free or status.get("admitted") is True)
