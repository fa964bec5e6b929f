"""What a decision may ask for: at most one effect, and when to look again."""

from dataclasses import dataclass

from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.dependencies import RelatedJob


@dataclass(frozen=True, slots=True)
class PodGone:
    """To confirm by a live read: the API server has no such pod, or another of its name."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class WorkerReplaced:
    """To confirm by a live read: another process than this one is the newest of its pod."""

    namespace: str
    pod: str
    worker: str


@dataclass(frozen=True, slots=True)
class DuplicateStillLive:
    """To confirm by a live read: the other holder of a deduplication id is there and unfinished."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class TypeUnserved:
    """To confirm by a live read: workers serve the queue, and none of them lists the type."""

    namespace: str
    queue: str
    type: str


@dataclass(frozen=True, slots=True)
class DependencyFailed:
    """To confirm by a live read: the job is there and has finished without success."""

    job: RelatedJob


@dataclass(frozen=True, slots=True)
class DependencyMissing:
    """To confirm by a live read: there is no job of the name."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class DependencyCycle:
    """To confirm by live reads: all jobs of the cycle are there, and none has got out of it."""

    cycle: tuple[RelatedJob, ...]


@dataclass(frozen=True, slots=True)
class CancelCascades:
    """To confirm by a live read: the job is there, and what hangs on it is cancelled with it."""

    job: RelatedJob


@dataclass(frozen=True, slots=True)
class ChildrenFinished:
    """To confirm by a live list: all children of these jobs, by UID, have finished.

    Those of some have to have succeeded.
    """

    namespace: str
    parents: tuple[str, ...]
    must_succeed: tuple[str, ...]


DependencyPrecondition = (
    DependencyFailed | DependencyMissing | DependencyCycle | CancelCascades | ChildrenFinished
)
"""What concerns other jobs."""

Precondition = PodGone | WorkerReplaced | DuplicateStillLive | TypeUnserved | DependencyPrecondition
"""What a cache says and a live read must confirm before anyone acts on it."""


@dataclass(frozen=True, slots=True)
class ChangePhase:
    """Write a change of phase; `policy` names who asks for it."""

    policy: str
    change: PhaseChange
    precondition: Precondition | None = None


@dataclass(frozen=True, slots=True)
class Admit:
    """Open the gate of a queued job, in place."""

    policy: str
    precondition: Precondition | None = None


@dataclass(frozen=True, slots=True)
class UpdateWaitReason:
    """Say in place what a pending job waits for now."""

    policy: str
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class CreateRerun:
    """Create the job `name`, then acknowledge wish `number`."""

    policy: str
    number: int
    name: str


@dataclass(frozen=True, slots=True)
class RefuseRedrive:
    """Write nothing but an Event: wish `number` cannot be granted."""

    policy: str
    number: int
    message: str
    precondition: Precondition | None = None


@dataclass(frozen=True, slots=True)
class CascadeCancel:
    """Set `cancel` on the job itself, and hand on that it cascades."""

    policy: str
    precondition: Precondition


@dataclass(frozen=True, slots=True)
class CancelDeleted:
    """Set `cancel` on the job itself, which is being deleted."""

    policy: str


Effect = (
    ChangePhase
    | Admit
    | UpdateWaitReason
    | CreateRerun
    | RefuseRedrive
    | CascadeCancel
    | CancelDeleted
)


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before this time on the monotonic clock."""

    until: float


@dataclass(frozen=True, slots=True)
class AwaitReservation:
    """Nothing to do until the job has a place in its queue."""


AWAIT_RESERVATION = AwaitReservation()

PolicyResult = Effect | Wait | AwaitReservation | None
"""What one policy says. An effect ends the chain; what is only to be waited for does not."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The one effect due now, if any, and when time alone may bring the next.

    `awaits_reservation`: the job waits for a place in its queue.
    """

    effect: Effect | None = None
    requeue_at: float | None = None
    awaits_reservation: bool = False


NO_ACTION = Decision()
