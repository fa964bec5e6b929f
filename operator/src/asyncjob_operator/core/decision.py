"""What a decision consists of: at most one effect, its precondition, and when to decide again."""

from dataclasses import dataclass
from enum import Enum, auto

from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.waits import WaitedChild
from asyncjob.names import JOB_KIND
from asyncjob_operator.core.dependencies import RelatedJob


@dataclass(frozen=True, slots=True)
class PodGone:
    """To verify by a live read: the pod with this UID does not exist."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class WorkerReplaced:
    """To verify by a live read: the newest process of the pod is another than this worker."""

    namespace: str
    pod: str
    worker: str


@dataclass(frozen=True, slots=True)
class ContainerDown:
    """To verify by a live read: the worker's container has ended so, and does not run again."""

    namespace: str
    pod: str
    pod_uid: str
    finished_at: float
    """Epoch seconds by the node's clock."""

    exit_code: int


@dataclass(frozen=True, slots=True)
class DuplicateStillLive:
    """To verify by a live read: the other job with a deduplication id exists and is unfinished."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class NoLiveDuplicate:
    """To verify by a live list: no job but this one is live with the deduplication id."""

    namespace: str
    uid: str
    deduplication_id: str


@dataclass(frozen=True, slots=True)
class TypeUnserved:
    """To verify by a live read: workers serve the queue, and none of them lists the type."""

    namespace: str
    queue: str
    type: str


@dataclass(frozen=True, slots=True)
class DependencyHasFailed:
    """To verify by a live read: the job or array exists and has finished without success."""

    job: RelatedJob


@dataclass(frozen=True, slots=True)
class DependencyMissing:
    """To verify by a live read: no job, or no array, of this name exists."""

    namespace: str
    name: str
    kind: str = JOB_KIND


@dataclass(frozen=True, slots=True)
class DependencyCycle:
    """To verify by live reads: all of the cycle exist, and none is in a final phase."""

    cycle: tuple[RelatedJob, ...]


@dataclass(frozen=True, slots=True)
class CancelCascades:
    """To verify by a live read: the job exists, and its cancellation cascades."""

    job: RelatedJob


@dataclass(frozen=True, slots=True)
class ChildrenFinished:
    """To verify by a live list: all children of these jobs have finished."""

    namespace: str
    parents: tuple[str, ...]
    """UIDs of the jobs."""

    must_succeed: tuple[str, ...]
    """UIDs of those whose children have to have succeeded."""


@dataclass(frozen=True, slots=True)
class ChildrenOver:
    """To verify by live reads: each of these children has finished, or is gone."""

    namespace: str
    children: tuple[WaitedChild, ...]


DependencyPrecondition = (
    DependencyHasFailed
    | DependencyMissing
    | DependencyCycle
    | CancelCascades
    | ChildrenFinished
    | ChildrenOver
)
"""A precondition that concerns other jobs."""

SinglePrecondition = (
    PodGone
    | WorkerReplaced
    | ContainerDown
    | DuplicateStillLive
    | NoLiveDuplicate
    | TypeUnserved
    | DependencyPrecondition
)


@dataclass(frozen=True, slots=True)
class AllOf:
    """To verify: each of these."""

    preconditions: tuple[SinglePrecondition, ...]


Precondition = SinglePrecondition | AllOf
"""What the cache says and a live read must confirm before an effect is written."""


@dataclass(frozen=True, slots=True)
class ChangePhase:
    """Write a change of phase; `policy` is the name of the policy that asks for it."""

    policy: str
    change: PhaseChange
    precondition: Precondition | None = None


@dataclass(frozen=True, slots=True)
class Admit:
    """Set `admitted` on a queued job."""

    policy: str
    precondition: Precondition | None = None


@dataclass(frozen=True, slots=True)
class UpdateWaitReason:
    """Write what a pending job waits for now, without a change of phase."""

    policy: str
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class CreateRerun:
    """Create the job `name`, then acknowledge rerun request `number`."""

    policy: str
    number: int
    name: str


class RedriveRefusal(Enum):
    """Why a redrive is refused."""

    DUPLICATE = auto()
    """Another live job has the deduplication id; it may be free later."""

    PAST_DEADLINE = auto()
    """For good: the request is void once this was told."""


@dataclass(frozen=True, slots=True)
class RefuseRedrive:
    """Post an Event: redrive request `number` is refused. The job is not written."""

    policy: str
    number: int
    why: RedriveRefusal
    message: str
    precondition: Precondition | None = None


@dataclass(frozen=True, slots=True)
class CascadeCancel:
    """Set `cancel` and `cancelCascade` on the job itself."""

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
    """Nothing to do until the job has a reservation in its queue."""


AWAIT_RESERVATION = AwaitReservation()

PolicyResult = Effect | Wait | AwaitReservation | None
"""What one policy returns. An effect ends the chain; a wait does not."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is due for a job."""

    effect: Effect | None = None
    """The one effect due now, if any."""

    requeue_at: float | None = None
    """When to decide again if nothing changes, in monotonic seconds; None: never."""

    awaits_reservation: bool = False
    """Whether the job waits for a reservation in its queue."""


NO_ACTION = Decision()
