"""What a state of the search consists of, and how large the searched worlds are."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from asyncjob_dev.proofs.protocol.server import Stored
from asyncjob_dev.proofs.rules.admission import Requester
from asyncjob_operator.core.snapshot import Observation

TICK: Final = 3.0
"""Seconds by which time goes on."""

LEASE: Final = 6
"""Seconds that a lease lasts; a worker stops after two ticks, the operator waits three."""

MAX_AGE: Final = 3
"""Ticks beyond which ages are not told apart: all timers are over by then."""

IDLE, CLAIMING, WORKING, ENDING = "idle", "claiming", "working", "ending"


class Request(NamedTuple):
    """A request that is still on its way after its sender has given up waiting for the answer."""

    job: int
    patch: str
    by: int
    """The worker."""

    claim: str
    """The claim that it goes by; empty for a claim itself."""

    version: Stored
    """For a claim: the job that it was made for, to which alone it applies."""


class Worker(NamedTuple):
    """A worker process with one slot."""

    process: int = 1
    """Number of this start of the process."""

    frozen: bool = False
    stage: str = IDLE
    job: int = -1
    seen: Stored = ""
    """The job as claimed or, while claiming, as it was."""

    claim: str = ""
    age: int = 0
    """Ticks since the claim or the last stored heartbeat was sent."""

    renewals: int = 0
    unconfirmed: int = -1
    """Ticks since a heartbeat was sent without an answer; -1 if there is none."""

    outcome: str = ""
    unknown: bool = False
    """Whether the last answer was lost."""


class Operator(NamedTuple):
    """An operator's replica: when it saw what of each job, and what it holds for the newest."""

    seen: tuple[Observation | None, ...]
    cache: tuple[Stored, ...]
    """Jobs as it has come to know them, empty for none; only where jobs depend on one another.

    A list or live reads may show a newer job before an older one, so each may be any version.
    """

    pending: tuple[str, ...]
    """For each job a write that is on its way, its precondition verified; empty for none.

    It goes by the version of the job, and is forgotten once that is another.
    """

    def awaiting(self, place: int, body: str) -> "Operator":
        """Return it with another write on its way to a job."""
        pending = (*self.pending[:place], body, *self.pending[place + 1 :])
        return self._replace(pending=pending)


class State(NamedTuple):
    """Everything."""

    jobs: tuple[Stored, ...]
    workers: tuple[Worker, ...]
    operators: tuple[Operator, ...]
    late: frozenset[Request] = frozenset()
    faults: int = 0
    """Faults that may still happen."""

    controls: tuple[str, ...] = ()
    """What users may still ask for."""


@dataclass(frozen=True)
class World:
    """What is searched: jobs, who works on them, and what may go wrong."""

    name: str
    title: str
    specs: tuple[str, ...]
    faults: int
    workers: int = 2
    operators: int = 2
    controls: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ("succeed", "fail", "release")
    max_renewals: int = 1
    related: bool = False
    """Whether decisions read other jobs from the operator's cache."""

    attentive: bool = False
    """Whether replicas see each version at once.

    One that sees it later also waits longer before it acts on it: in between it is as if it had
    seen it and not acted. So this leaves out no order of writes, only what may be wrong in how
    versions are told apart.
    """

    without: frozenset[str] = frozenset()
    """Precautions that are left out, to see that the search finds what they are for."""


def pod_of(worker: int) -> Requester:
    """Return a worker as rules see it."""
    return Requester(pod=f"pod-{worker}", pod_uid=f"pod-uid-{worker}", is_worker=True)


OPERATES: Final = Requester(operates=True)


def identity_of(worker: int, process: int) -> str:
    """Return the identity of a start of the worker's process."""
    return f"pod-{worker}/{process}"


def start(world: World, jobs: tuple[Stored, ...]) -> State:
    """Return the first state."""
    cache, nobody = ("",) * len(jobs) if world.related else (), (None,) * len(jobs)
    nothing = Operator(nobody, cache, ("",) * len(jobs))
    return State(
        jobs,
        (Worker(),) * world.workers,
        (nothing,) * world.operators,
        faults=world.faults,
        controls=world.controls,
    )
