"""Two operators that both believe to lead, with caches as old as can be, never break a limit."""

from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from asyncjob.lifecycle.phases import Phase
from asyncjob.names import job_path, job_status_path, queue_path, queue_status_path
from asyncjob_operator.core.admission.reservations import reservations_body
from asyncjob_operator.core.decision import Admit
from asyncjob_operator.core.now import Now
from asyncjob_simulation.apiserver.identities import account_identity
from support.in_memory.fake_session import OPERATOR, operator_cluster
from support.in_memory.memory import MemoryClient, Stored
from support.objects.snapshots import at, raw
from support.parts.evaluation import evaluation

QUEUE = ("ns", "default")
QUEUE_PATH = queue_path(*QUEUE)
NAMES = ("a", "b", "c", "d")

Object = dict[str, Any]


class Cluster:
    """The API server in memory, and what users and workers do there."""

    def __init__(self, **limits: Any) -> None:
        self.clock = 0.0
        self.server = operator_cluster(lambda: at(self.clock).wall)
        token = self.server.tokens.issue(account_identity("ns", OPERATOR))
        self.operator = MemoryClient("https://memory", Path(), token, server=self.server)
        self._objects = Stored(self.server)
        self._objects[QUEUE_PATH] = {"metadata": {"name": "default"}, "spec": limits}
        for name in NAMES:
            self.put(name, {})

    @property
    def queue(self) -> Object:
        """The queue."""
        return self._objects[QUEUE_PATH]

    def job(self, name: str) -> Object:
        """Return a job."""
        return self._objects[job_path("ns", name)]

    def put(self, name: str, status: Object, **spec: Any) -> None:
        """Create the job again as it would be created, or as it has come to be."""
        self._objects[job_path("ns", name)] = dict(raw(name, spec=spec, **status))

    def move(self, name: str, phase: Phase, **status: Any) -> None:
        """Move a job to a phase; every stay in one has a time of its own."""
        self.clock += 1
        attempt = self.job(name)["status"].get("attempt", 0)
        spec = {k: v for k, v in self.job(name)["spec"].items() if k == "suspend"}
        merged = {
            "phase": phase.value,
            "attempt": attempt,
            "lastTransitionTime": at(self.clock).timestamp,
        }
        self.put(name, {**merged, **status}, **spec)

    def claim(self, name: str) -> None:
        """Claim the job as a worker of a limited queue does: only if it is admitted."""
        status = self.job(name)["status"]
        if status["phase"] == "Queued" and status.get("admitted"):
            attempt = status.get("attempt", 0) + 1
            self.move(name, Phase.RUNNING, admitted=True, attempt=attempt, claim=f"c{attempt}")

    def end(self, name: str, phase: Phase) -> None:
        """End an attempt."""
        if self.job(name)["status"]["phase"] == "Running":
            more = {"completionTime": at(0).timestamp} if phase is Phase.SUCCEEDED else {}
            self.move(name, phase, **more)

    def suspend(self, name: str) -> None:
        """Let the user hold a queued job back, and the operator see to it."""
        if self.job(name)["status"]["phase"] == "Queued":
            self.move(name, Phase.PENDING, reason="Suspended")

    def resume(self, name: str) -> None:
        """Let a pending job be queued again."""
        if self.job(name)["status"]["phase"] == "Pending":
            self.move(name, Phase.QUEUED)

    def occupied(self) -> list[str]:
        """Return the jobs that run or may be claimed any moment."""
        statuses = {name: self.job(name)["status"] for name in NAMES}
        return [
            name
            for name, status in statuses.items()
            if status["phase"] == "Running"
            or (status["phase"] == "Queued" and status.get("admitted"))
        ]


class Operator:
    """The real observer, shown what the test wants it to see, and writing when the test wants."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        made = evaluation(self.moment)
        self.observer, self.caches = made.evaluator, made.caches
        self.admissions = made.admission_rounds()
        self.pending: list[Callable[[], None]] = []
        self.sync_queue()

    def moment(self) -> Now:
        return at(self.cluster.clock)

    def sync_job(self, name: str) -> None:
        self.observer.on_update(self.cluster.job(name), just_changed=True)

    def sync_queue(self) -> None:
        self.caches.queues.on_update(self.cluster.queue)

    def allot(self) -> None:
        """Plan with what is known here; the write comes later, if at all."""
        for place in self.admissions.unverified(QUEUE):
            self.admissions.record(QUEUE, place, self.cluster.job(place.name))
        plan = self.admissions.plan(QUEUE, self.moment())
        if plan and (plan.admitted or plan.reclaimed):
            body = reservations_body(plan.version, plan.reservations, plan.recent_starts)

            def write() -> None:
                self._write(queue_status_path(*QUEUE), body)
                self.sync_queue()
                self.admissions.requeue(plan)

            self.pending.append(write)

    def admit(self, name: str) -> None:
        """Read the job afresh and decide; the write comes later, exact on what was read."""
        read = self.cluster.job(name)
        _, decision = self.observer.refresh(read, 0.5)
        if isinstance(decision.effect, Admit):
            version = read["metadata"]["resourceVersion"]
            self.pending.append(lambda: self._admit(name, version))
        self.observer.evaluate(f"uid-{name}")

    def _admit(self, name: str, version: str) -> None:
        status = {"admitted": True, "lastUpdateTime": self.moment().timestamp}
        body = {"metadata": {"resourceVersion": version}, "status": status}
        self._write(job_status_path("ns", name), body)
        self.sync_job(name)

    def _write(self, path: str, body: Any) -> None:
        """Write, unless somebody else has written since; no rule may stand in the way."""
        answer = self.cluster.operator.merge(path, body)
        if answer.status != HTTPStatus.CONFLICT:
            answer.object()

    def flush(self, index: int) -> None:
        if self.pending:
            self.pending.pop(index % len(self.pending))()

    def catch_up(self, name: str) -> None:
        """See everything, give places, and admit one."""
        for other in NAMES:
            self.sync_job(other)
        self.sync_queue()
        self.allot()
        self.admit(name)

    def drain(self) -> None:
        while self.pending:
            self.flush(0)


STEPS: dict[str, Callable[[Cluster, Operator, str, int], None]] = {
    "sync": lambda _, operator, name, __: operator.sync_job(name),
    "queue": lambda _, operator, *__: operator.sync_queue(),
    "allot": lambda _, operator, *__: operator.allot(),
    "admit": lambda _, operator, name, __: operator.admit(name),
    "flush": lambda _, operator, __, which: operator.flush(which),
    "drain": lambda _, operator, *__: operator.drain(),
    "catch up": lambda _, operator, name, __: operator.catch_up(name),
    "claim": lambda cluster, _, name, __: cluster.claim(name),
    "succeed": lambda cluster, _, name, __: cluster.end(name, Phase.SUCCEEDED),
    "retry": lambda cluster, _, name, __: cluster.end(name, Phase.QUEUED),
    "suspend": lambda cluster, _, name, __: cluster.suspend(name),
    "resume": lambda cluster, _, name, __: cluster.resume(name),
}
Step = tuple[str, int, int]
SOME: Final = st.lists(
    st.tuples(st.sampled_from(list(STEPS)), st.integers(0, 1), st.integers(0, len(NAMES) - 1)),
    min_size=20,
    max_size=100,
)


def prepared(limit: int) -> tuple[Cluster, tuple[Operator, Operator]]:
    """Return a cluster and two operators that have seen all of it once."""
    cluster = Cluster(maxConcurrency=limit)
    operators = (Operator(cluster), Operator(cluster))
    for operator in operators:
        operator.caches.worker_registry.slots = lambda *_: 100  # type: ignore[method-assign]
        for name in NAMES:
            operator.sync_job(name)
    return cluster, operators


def play(cluster: Cluster, operators: tuple[Operator, Operator], step: Step) -> None:
    what, who, which = step
    STEPS[what](cluster, operators[who], NAMES[which], which)


@settings(max_examples=400, deadline=None)
@given(st.integers(1, 2), SOME)
def test_a_limit_holds_whatever_the_operators_have_seen(limit: int, steps: list[Step]) -> None:
    cluster, operators = prepared(limit)
    for step in steps:
        play(cluster, operators, step)
        assert len(cluster.occupied()) <= limit, (step, cluster.queue)


def test_a_place_stays_with_its_job_though_another_operator_has_not_seen_it_queued_yet() -> None:
    cluster, (one, other) = prepared(1)
    cluster.suspend("a")
    one.sync_job("a")
    other.sync_job("a")
    cluster.resume("a")
    one.sync_job("a")
    one.allot()
    one.drain()
    other.sync_queue()
    other.allot()
    other.drain()
    one.admit("a")
    one.drain()
    other.admit("b")
    other.drain()
    assert cluster.occupied() == ["a"]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 2), SOME)
def test_places_are_given_again_once_all_has_been_seen(limit: int, steps: list[Step]) -> None:
    cluster, operators = prepared(limit)
    for step in steps:
        play(cluster, operators, step)
    one = operators[0]
    for name in NAMES * len(NAMES):
        cluster.resume(name)
        one.catch_up(name)
        one.drain()
        one.catch_up(name)
        one.drain()
        cluster.claim(name)
        cluster.end(name, Phase.SUCCEEDED)
    assert {cluster.job(name)["status"]["phase"] for name in NAMES} == {"Succeeded"}
