"""What a forbidden write is, and where it is tried."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asyncjob.lifecycle.phases import Phase
from support.cluster.api import Answer, Client
from support.cluster.identities import Space, Worker
from support.driven.lives import Decide, Life
from support.objects.builders import claim_of

NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class ForbiddenSetup:
    """A namespace with two workers; `dry` keeps the forbidden writes from taking effect."""

    space: Space
    worker: Worker
    other: Worker
    operator: Client
    dry: bool = False

    @classmethod
    def set_in(cls, space: Space, *, dry: bool = False) -> "ForbiddenSetup":
        """Prepare a namespace, or one that was before."""
        worker, other = (space.worker(f"worker-{next(NUMBERS)}") for _ in range(2))
        return cls(space, worker, other, space.operator(), dry)

    def acting(self, who: Client) -> Client:
        """Return the identity as it does the forbidden write."""
        return who.dry() if self.dry else who

    def life(self, phase: Phase = Phase.QUEUED, **spec: Any) -> Life:
        """Return a new job in a phase."""
        life = Life(self.space.name, f"case-{next(NUMBERS)}", self.space.admin, self.worker)
        life.create(**spec)
        return life.bring(phase)


Attempt = Callable[[ForbiddenSetup], Answer]


@dataclass(frozen=True)
class Case:
    """One forbidden write: the rule it breaks, and what it tries."""

    rule: str
    title: str
    attempt: Attempt

    def __str__(self) -> str:
        """Return a name for the test."""
        return f"{self.rule}: {self.title}"


def merged(target: Any, changes: dict[str, Any]) -> dict[str, Any]:
    """Return the object with changes, objects within it likewise."""
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in changes.items():
        result[key] = merged(result.get(key), value) if isinstance(value, dict) else value
    return result


def claim(rule: str, title: str, *, spec: dict[str, Any] | None = None, **changes: Any) -> Case:
    """Return a claim by a worker in its own name, with some fields of the status changed."""

    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(**(spec or {}))
        body = claim_of(life.read(), setup.worker.pod, setup.worker.pod_uid)
        body["status"] = merged(body["status"], changes)
        return setup.acting(setup.worker.client).merge(life.status_path, body)

    return Case(rule, title, attempt)


def report(rule: str, title: str, **changes: Any) -> Case:
    """Return a write by the holder of a running job that leaves the phase as it is."""

    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(Phase.RUNNING)
        return setup.acting(setup.worker.client).merge(life.status_path, {"status": changes})

    return Case(rule, title, attempt)


def outcome(
    rule: str, title: str, decide: Decide, *, spec: dict[str, Any] | None = None, **changes: Any
) -> Case:
    """Return a change of phase by the holder of a running job, with some fields changed."""

    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(Phase.RUNNING, **(spec or {}))
        return life.move(decide, setup.acting(setup.worker.client), **changes)

    return Case(rule, title, attempt)


def operator_move(rule: str, title: str, phase: Phase, decide: Decide, **changes: Any) -> Case:
    """Return a change of phase by the operator, with some fields changed."""

    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(phase)
        return life.move(decide, setup.acting(setup.operator), **changes)

    return Case(rule, title, attempt)


def operator_report(rule: str, title: str, phase: Phase, **changes: Any) -> Case:
    """Return a write by the operator that leaves the phase as it is."""

    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(phase)
        operations = [
            {"op": "add", "path": f"/status/{name}", "value": value}
            for name, value in changes.items()
        ]
        return setup.acting(setup.operator).patch(life.status_path, operations)

    return Case(rule, title, attempt)
