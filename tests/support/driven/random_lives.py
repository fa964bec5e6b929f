"""A state machine of many actors that do random things to few jobs on a real API server.

Legal and illegal writes are mixed. After each step the new version of the job is judged by
`support.judging.checker` and the audit. What has to be accepted is asserted too, so that rules
that are too strict show.
"""

import itertools
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from asyncjob.lifecycle.job_view import read_job
from asyncjob.lifecycle.phase_change import PhaseChange, status_fields, status_json_patch
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import JOBS, collection_path, job_path, job_status_path
from support.cluster.api import Answer, Client
from support.cluster.identities import Space, Worker
from support.driven import lives
from support.judging.checker import change_violations, misuse, overreach
from support.objects.builders import at, claim_of, job

NUMBERS = itertools.count(1)

ENDINGS = (
    lives.succeeded,
    lives.failed,
    lives.given_up,
    lives.released,
    lives.crashed,
    lives.evicted,
    lives.overran,
    lives.cancelled,
)
THEIRS = {lives.crashed, lives.evicted}
"""Ends that only the operator finds."""

FORGED: tuple[dict[str, Any], ...] = ({"checkpoint": {"row": 9}}, {"progress": {"percent": 99}})
"""What an operator may write beside what it moves, if nobody refuses."""

GATES = (lives.scheduled, lives.held_back, lives.promoted, lives.dropped, lives.timed_out)
SPECS = st.fixed_dictionaries(
    {"payload": st.sampled_from([None, {"a": 1}, [1, None], "text"])},
    optional={
        "notBefore": st.just(at()),
        "deduplicationId": st.just("one"),
        "suspend": st.booleans(),
        "retryPolicy": st.fixed_dictionaries(
            {"maxRetries": st.integers(0, 2)},
            optional={"jitter": st.sampled_from([0, 0.5]), "retryOn": st.just(["Internal"])},
        ),
    },
)
CONTROL_CHANGES = st.one_of(
    st.fixed_dictionaries({"cancel": st.booleans()}),
    st.fixed_dictionaries({"suspend": st.booleans()}),
    st.fixed_dictionaries({"redrive": st.integers(0, 5)}),
    st.fixed_dictionaries({"rerun": st.integers(0, 5)}),
    st.fixed_dictionaries({"priority": st.integers(-5, 5)}),
    st.fixed_dictionaries({"payload": st.just({"a": 2})}),
    st.fixed_dictionaries({"type": st.just("other")}),
)
FORGERIES: dict[str, st.SearchStrategy[Any]] = {
    "phase": st.sampled_from([phase.value for phase in Phase]),
    "attempt": st.integers(0, 3),
    "claim": st.sampled_from(["x", "y"]),
    "retries": st.integers(0, 3),
    "crashes": st.integers(0, 3),
    "releases": st.integers(0, 3),
    "redrives": st.integers(0, 3),
    "reruns": st.integers(0, 3),
    "admitted": st.booleans(),
    "reason": st.sampled_from(["Released", "RetriesExhausted", "GateOpened"]),
    "result": st.just({"forged": True}),
    "checkpoint": st.just({"forged": True}),
    "completionTime": st.just(at(5)),
    "lease": st.sampled_from([None, {"holder": "me"}, {"renewals": 0}]),
    "history": st.just([]),
    "effective": st.just({"maxRetries": 99}),
    "progress": st.just({"percent": 7}),
    "retryDelaySeconds": st.just(0),
}
MUTATIONS = st.lists(st.sampled_from(sorted(FORGERIES)), min_size=1, max_size=2).flatmap(
    lambda names: st.fixed_dictionaries({name: FORGERIES[name] for name in names})
)
"""One or two fields: a forgery that breaks many rules at once would show none of them missing."""


_ADMITTED = {"status": {"admitted": True}}


@dataclass
class RandomRun:
    """The actors, and what has been done so far."""

    space: Space
    operator: Client
    workers: tuple[Worker, ...]
    steps: int = 0
    accepted: int = 0
    reached: set[str] = field(default_factory=set)


class RandomLives(RuleBasedStateMachine):
    """Few jobs, many hands."""

    run: ClassVar[RandomRun]

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, dict[str, Any]] = {}
        self.memories: dict[str, dict[str, Any]] = {}

    @rule(spec=SPECS)
    def create(self, spec: dict[str, Any]) -> None:
        """Create a job."""
        if len(self.known) >= 3:
            return
        name = f"job-{next(NUMBERS)}"
        admin, namespace = self.run.space.admin, self.run.space.name
        admin.create(collection_path(namespace, JOBS), job(name, **spec)).object()
        self.known[name] = admin.get(job_path(namespace, name)).object()

    @precondition(lambda self: self.known)
    @rule(pick=st.integers(0, 9), control=CONTROL_CHANGES)
    def change_spec(self, pick: int, control: dict[str, Any]) -> None:
        """Change the spec, as a user."""
        name = self._name(pick)
        path = job_path(self.run.space.name, name)
        self._judge(name, self.run.space.admin.merge(path, {"spec": control}))

    @precondition(lambda self: self.known)
    @rule(pick=st.integers(0, 9), by=st.integers(0, 9))
    def claim(self, pick: int, by: int) -> None:
        """Claim as a worker, whether it may or not."""
        name, worker = self._name(pick), self._worker(by)
        obj = self.known[name]
        body = claim_of(obj, worker.pod, worker.pod_uid)
        answer = self._judge(name, worker.client.merge(self._status(name), body), worker)
        view = read_job(obj)
        if view.phase is Phase.QUEUED and not view.gated:
            answer.object()
        if answer.accepted:
            self.memories[worker.pod] = answer.body

    @precondition(lambda self: self.memories)
    @rule(by=st.integers(0, 9), ending=st.sampled_from(ENDINGS))
    def report(self, by: int, ending: lives.Decide) -> None:
        """Report as a worker on what it once claimed, however long ago."""
        worker = self._worker(by)
        memory = self.memories.get(worker.pod)
        if memory is None:
            return
        name, view = memory["metadata"]["name"], read_job(memory)
        fields = {
            **status_fields(ending(view), memory["status"]),
            "claim": view.claim,
            "attempt": view.attempt,
        }
        operations = status_json_patch(fields, memory["status"])
        still_mine = self.known[name]["status"].get("claim") == view.claim
        running = self.known[name]["status"]["phase"] == "Running"
        answer = self._judge(name, worker.client.patch(self._status(name), operations), worker)
        wanted = ending is not lives.cancelled or self.known[name]["spec"].get("cancel")
        if still_mine and running and wanted and ending not in THEIRS:
            answer.object()
        assert still_mine or not answer.accepted

    @precondition(lambda self: self.known)
    @rule(
        pick=st.integers(0, 9),
        decide=st.sampled_from((*GATES, *ENDINGS, lives.redriven)),
        forged=st.sampled_from(({}, *FORGED)),
    )
    def operate(self, pick: int, decide: lives.Decide, forged: dict[str, Any]) -> None:
        """Move a job as the operator, whether it may or not, and perhaps change more than that."""
        name = self._name(pick)
        obj = self.known[name]
        try:
            move = decide(read_job(obj))
        except KeyError:
            return  # no such move from this phase
        self._move(name, replace(move, fields={**move.fields, **forged}))

    @precondition(lambda self: self.known)
    @rule(pick=st.integers(0, 9), by=st.integers(0, 9), ending=st.sampled_from(ENDINGS))
    def attempt(self, pick: int, by: int, ending: lives.Decide) -> None:
        """Run a whole attempt: promote, admit, claim, report."""
        self.gate(pick)
        name = self._name(pick)
        if self.known[name]["status"]["phase"] == "Queued":
            self._judge(name, self.run.operator.merge(self._status(name), _ADMITTED))
        self.claim(pick, by)
        self.report(by, ending)

    @precondition(lambda self: self.known)
    @rule(pick=st.integers(0, 9), hold=st.booleans())
    def gate(self, pick: int, *, hold: bool = False) -> None:
        """Put a queued job off or hold it back, and queue what waits, as the operator."""
        name = self._name(pick)
        view = read_job(self.known[name])
        if view.phase is Phase.QUEUED and view.gates.not_before:
            self._move(name, lives.scheduled(view)).object()
        elif view.phase is Phase.QUEUED and hold:
            self._move(name, lives.held_back(view)).object()
        elif view.phase in {Phase.PENDING, Phase.SCHEDULED, Phase.RETRYING}:
            self._move(name, lives.promoted(view)).object()

    @precondition(lambda self: self.known)
    @rule(pick=st.integers(0, 9))
    def cancel(self, pick: int) -> None:
        """Request the cancellation of a job as a user, and carry it out as the operator."""
        name = self._name(pick)
        requested = self.run.space.admin.merge(
            job_path(self.run.space.name, name), {"spec": {"cancel": True}}
        )
        self._judge(name, requested)
        view = read_job(self.known[name])
        if requested.accepted and view.phase not in {Phase.RUNNING, Phase.CANCELLED}:
            self._move(name, lives.dropped(view)).object()

    @precondition(lambda self: self.known)
    @rule(pick=st.integers(0, 9), by=st.integers(0, 9), mutation=MUTATIONS)
    def forge(self, pick: int, by: int, mutation: dict[str, Any]) -> None:
        """Write nonsense into the status, as a worker or the operator."""
        name = self._name(pick)
        worker = self._worker(by) if by % 3 else None
        client = worker.client if worker else self.run.operator
        self._judge(name, client.merge(self._status(name), {"status": mutation}), worker)

    @precondition(lambda self: self.known)
    @rule(pick=st.integers(0, 9))
    def recreate(self, pick: int) -> None:
        """Delete a job and create another of its name."""
        name = self._name(pick)
        admin, namespace = self.run.space.admin, self.run.space.name
        admin.delete(job_path(namespace, name)).object()
        admin.create(collection_path(namespace, JOBS), job(name)).object()
        self.known[name] = admin.get(job_path(namespace, name)).object()

    def _move(self, name: str, move: PhaseChange) -> Answer:
        obj = self.known[name]
        body = {
            "metadata": {"resourceVersion": obj["metadata"]["resourceVersion"]},
            "status": status_fields(move, obj["status"]),
        }
        return self._judge(name, self.run.operator.merge(self._status(name), body))

    def _judge(self, name: str, answer: Answer, worker: Worker | None = None) -> Answer:
        before = self.known[name]
        after = self.run.space.admin.get(job_path(self.run.space.name, name)).object()
        self.known[name] = after
        self.run.steps += 1
        self.run.accepted += answer.accepted
        self.run.reached.add(after["status"]["phase"])
        broken = change_violations(before, after)
        broken += misuse(before, after, worker.pod_uid) if worker else overreach(before, after)
        assert not broken, f"{broken} by {answer.status}: {answer.message}"
        if not answer.accepted:
            assert before["status"] == after["status"]
        return answer

    def _name(self, pick: int) -> str:
        return list(self.known)[pick % len(self.known)]

    def _worker(self, by: int) -> Worker:
        return self.run.workers[by % len(self.run.workers)]

    def _status(self, name: str) -> str:
        return job_status_path(self.run.space.name, name)
