"""Two operators that both believe to lead, with caches as old as can be, never break a limit."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.decision import Admit
from asyncjob_operator.core.now import Now
from support.evaluation import evaluation
from support.snapshots import at, raw

QUEUE = ("ns", "default")
NAMES = ("a", "b", "c", "d")


class Server:
    """Keeps objects with versions; a write is exact on the version it was decided on."""

    def __init__(self, **limits: Any) -> None:
        self.version = 100
        self.clock = 0.0
        meta = {"namespace": "ns", "name": "default", "resourceVersion": "100"}
        self.queue: Any = {"metadata": meta, "spec": limits, "status": {}}
        self.jobs: dict[str, Any] = {}
        for name in NAMES:
            self.put(name, {})

    def put(self, name: str, status: dict[str, Any], **spec: Any) -> None:
        """Create the job again as it would be created, or as it has come to be."""
        job: Any = raw(name, spec=spec, **status)
        self.version += 1
        job["metadata"]["resourceVersion"] = str(self.version)
        self.jobs[name] = job

    def move(self, name: str, phase: Phase, **status: Any) -> None:
        """Move a job to a phase; every stay in one has a time of its own."""
        self.clock += 1
        attempt = self.jobs[name]["status"].get("attempt", 0)
        spec = {k: v for k, v in self.jobs[name]["spec"].items() if k == "suspend"}
        merged = {
            "phase": phase.value,
            "attempt": attempt,
            "lastTransitionTime": at(self.clock).timestamp,
        }
        self.put(name, {**merged, **status}, **spec)

    def claim(self, name: str) -> None:
        """Claim the job as a worker of a limited queue does: only if it is admitted."""
        status = self.jobs[name]["status"]
        if status["phase"] == "Queued" and status.get("admitted"):
            attempt = status.get("attempt", 0) + 1
            self.move(name, Phase.RUNNING, admitted=True, attempt=attempt, claim=f"c{attempt}")

    def end(self, name: str, phase: Phase) -> None:
        """End an attempt."""
        if self.jobs[name]["status"]["phase"] == "Running":
            more = {"completionTime": at(0).timestamp} if phase is Phase.SUCCEEDED else {}
            self.move(name, phase, **more)

    def suspend(self, name: str) -> None:
        """Let the user hold a queued job back, and the operator see to it."""
        if self.jobs[name]["status"]["phase"] == "Queued":
            self.move(name, Phase.PENDING, reason="Suspended")

    def resume(self, name: str) -> None:
        """Let a pending job be queued again."""
        if self.jobs[name]["status"]["phase"] == "Pending":
            self.move(name, Phase.QUEUED)

    def occupied(self) -> list[str]:
        """Return the jobs that run or may be claimed any moment."""
        statuses = {name: job["status"] for name, job in self.jobs.items()}
        return [
            name
            for name, status in statuses.items()
            if status["phase"] == "Running"
            or (status["phase"] == "Queued" and status.get("admitted"))
        ]


class Operator:
    """The real observer, shown what the test wants it to see, and writing when the test wants."""

    def __init__(self, server: Server) -> None:
        self.server = server
        made = evaluation(self.moment, self)
        self.observer, self.caches = made.evaluator, made.caches
        self.admissions = made.admission_rounds()
        self.pending: list[Callable[[], None]] = []
        self.sync_queue()

    def moment(self) -> Now:
        return at(self.server.clock)

    def enqueue(self, uid: str, lane: str) -> None: ...
    def dequeue(self, uid: str) -> None: ...
    def on_dead_letter(self, job: JobView, message: str) -> None: ...

    def sync_job(self, name: str) -> None:
        self.observer.on_update(deepcopy(self.server.jobs[name]), just_changed=True)

    def sync_queue(self) -> None:
        self.caches.queues.on_update(deepcopy(self.server.queue))

    def allot(self) -> None:
        """Plan with what is known here; the write comes later, if at all."""
        for place in self.admissions.unverified(QUEUE):
            self.admissions.record(QUEUE, place, deepcopy(self.server.jobs[place.name]))
        plan = self.admissions.plan(QUEUE, self.moment())
        if plan and (plan.admitted or plan.reclaimed):
            places = [place.to_json() for place in plan.reservations]
            version = plan.version

            def write() -> None:
                if self.server.queue["metadata"]["resourceVersion"] == version:
                    self.server.version += 1
                    self.server.queue["metadata"]["resourceVersion"] = str(self.server.version)
                    self.server.queue["status"] = {"reservations": places}
                self.sync_queue()
                self.admissions.requeue(plan)

            self.pending.append(write)

    def admit(self, name: str) -> None:
        """Read the job afresh and decide; the write comes later, exact on what was read."""
        read = deepcopy(self.server.jobs[name])
        _, decision = self.observer.refresh(read, 0.5)
        if isinstance(decision.effect, Admit):
            version = read["metadata"]["resourceVersion"]
            self.pending.append(lambda: self._admit(name, version))
        self.observer.evaluate(f"uid-{name}")

    def _admit(self, name: str, version: str) -> None:
        job = self.server.jobs[name]
        if job["metadata"]["resourceVersion"] == version:
            status = {**job["status"], "admitted": True}
            self.server.put(name, status)
        self.sync_job(name)

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


STEPS: dict[str, Callable[[Server, Operator, str, int], None]] = {
    "sync": lambda _, operator, name, __: operator.sync_job(name),
    "queue": lambda _, operator, *__: operator.sync_queue(),
    "allot": lambda _, operator, *__: operator.allot(),
    "admit": lambda _, operator, name, __: operator.admit(name),
    "flush": lambda _, operator, __, which: operator.flush(which),
    "drain": lambda _, operator, *__: operator.drain(),
    "catch up": lambda _, operator, name, __: operator.catch_up(name),
    "claim": lambda server, _, name, __: server.claim(name),
    "succeed": lambda server, _, name, __: server.end(name, Phase.SUCCEEDED),
    "retry": lambda server, _, name, __: server.end(name, Phase.QUEUED),
    "suspend": lambda server, _, name, __: server.suspend(name),
    "resume": lambda server, _, name, __: server.resume(name),
}
Step = tuple[str, int, int]
SOME: Final = st.lists(
    st.tuples(st.sampled_from(list(STEPS)), st.integers(0, 1), st.integers(0, len(NAMES) - 1)),
    min_size=20,
    max_size=100,
)


def prepared(limit: int) -> tuple[Server, tuple[Operator, Operator]]:
    """Return a server and two operators that have seen all of it once."""
    server = Server(maxConcurrency=limit)
    operators = (Operator(server), Operator(server))
    for operator in operators:
        operator.caches.worker_registry.slots = lambda *_: 100  # type: ignore[method-assign]
        for name in NAMES:
            operator.sync_job(name)
    return server, operators


def play(server: Server, operators: tuple[Operator, Operator], step: Step) -> None:
    what, who, which = step
    STEPS[what](server, operators[who], NAMES[which], which)


@settings(max_examples=400, deadline=None)
@given(st.integers(1, 2), SOME)
def test_a_limit_holds_whatever_the_operators_have_seen(limit: int, steps: list[Step]) -> None:
    server, operators = prepared(limit)
    for step in steps:
        play(server, operators, step)
        assert len(server.occupied()) <= limit, (step, server.jobs, server.queue)


def test_a_place_stays_with_its_job_though_another_operator_has_not_seen_it_queued_yet() -> None:
    server, (one, other) = prepared(1)
    server.suspend("a")
    one.sync_job("a")
    other.sync_job("a")
    server.resume("a")
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
    assert server.occupied() == ["a"]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 2), SOME)
def test_places_are_given_again_once_all_has_been_seen(limit: int, steps: list[Step]) -> None:
    server, operators = prepared(limit)
    for step in steps:
        play(server, operators, step)
    one = operators[0]
    for name in NAMES * len(NAMES):
        server.resume(name)
        one.catch_up(name)
        one.drain()
        one.catch_up(name)
        one.drain()
        server.claim(name)
        server.end(name, Phase.SUCCEEDED)
    assert {job["status"]["phase"] for job in server.jobs.values()} == {"Succeeded"}
