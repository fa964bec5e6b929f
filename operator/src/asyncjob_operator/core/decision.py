"""What a decision may ask for: at most one effect, and when to look again."""

from dataclasses import dataclass

from asyncjob.lifecycle.move import Move
from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.ties import Relative


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
class RivalLives:
    """To confirm by a live read: the other holder of a deduplication id is there and unfinished."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class TypeMissing:
    """To confirm by a live read: workers serve the queue, and none of them lists the type."""

    namespace: str
    queue: str
    type: str


@dataclass(frozen=True, slots=True)
class Ended:
    """To confirm by a live read: the job is there and has finished without success."""

    job: Relative


@dataclass(frozen=True, slots=True)
class Absent:
    """To confirm by a live read: there is no job of the name."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Stuck:
    """To confirm by live reads: all jobs of the cycle are there, and none has got out of it."""

    cycle: tuple[Relative, ...]


@dataclass(frozen=True, slots=True)
class Cascading:
    """To confirm by a live read: the job is there, and what hangs on it is cancelled with it."""

    job: Relative


@dataclass(frozen=True, slots=True)
class Childless:
    """To confirm by a live list: all children of these jobs, by UID, have finished.

    Those of some have to have succeeded.
    """

    namespace: str
    parents: tuple[str, ...]
    to_succeed: tuple[str, ...]


KinProof = Ended | Absent | Stuck | Cascading | Childless
"""What concerns other jobs."""

Proof = PodGone | WorkerReplaced | RivalLives | TypeMissing | KinProof
"""What a cache says and a live read must confirm before anyone acts on it."""


@dataclass(frozen=True, slots=True)
class Transition:
    """Write a change of phase; `policy` names who asks for it."""

    policy: str
    move: Move
    proof: Proof | None = None


@dataclass(frozen=True, slots=True)
class Admit:
    """Open the gate of a queued job, in place."""

    policy: str
    proof: Proof | None = None


@dataclass(frozen=True, slots=True)
class Rename:
    """Say in place what a pending job waits for now."""

    policy: str
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Rerun:
    """Create the job `name`, then acknowledge wish `number`."""

    policy: str
    number: int
    name: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """Write nothing but an Event: wish `number` cannot be granted."""

    policy: str
    number: int
    message: str
    proof: Proof | None = None


@dataclass(frozen=True, slots=True)
class Cascade:
    """Set `cancel` on the job itself, and hand on that it cascades."""

    policy: str
    proof: Proof


@dataclass(frozen=True, slots=True)
class Abort:
    """Set `cancel` on the job itself, which is being deleted."""

    policy: str


Effect = Transition | Admit | Rename | Rerun | Refuse | Cascade | Abort


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before this time on the monotonic clock."""

    until: float


@dataclass(frozen=True, slots=True)
class LineUp:
    """Nothing to do until the job has a place in its queue."""


LINE_UP = LineUp()

Verdict = Effect | Wait | LineUp | None
"""What one policy says. An effect ends the chain; what is only to be waited for does not."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The one effect due now, if any, and when time alone may bring the next.

    `lines_up`: the job waits for a place in its queue.
    """

    effect: Effect | None = None
    look_again_at: float | None = None
    lines_up: bool = False


NOTHING = Decision()
