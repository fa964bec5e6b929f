"""What deciding needs to know of an AsyncQueue; a queue without such an object is open."""

from dataclasses import dataclass

from asyncjob.json_types import JsonObject, child, flag, opt_integer, text
from asyncjob.models.queue import UnknownType
from asyncjob_operator.core.admission.limits import UNLIMITED, QueueLimits, read_limits


@dataclass(frozen=True, slots=True)
class QueueView:
    """Pause, limits, defaults and retention of a queue; None means that the queue says nothing."""

    paused: bool = False
    queue_timeout_seconds: int | None = None
    cancel_grace_seconds: int | None = None
    max_age_seconds: int | None = None
    max_finished: int | None = None
    min_age_seconds: int | None = None
    dead_letters_unknown_types: bool = False
    limits: QueueLimits = UNLIMITED

    @property
    def has_limits(self) -> bool:
        """Return whether jobs need a place, and to be admitted, before they are claimed."""
        return bool(self.limits)


OPEN_QUEUE = QueueView()


def read_queue(obj: JsonObject) -> QueueView:
    """Read an AsyncQueue."""
    spec = child(obj, "spec")
    defaults, retention = child(spec, "defaults"), child(spec, "retention")
    return QueueView(
        paused=flag(spec, "paused"),
        queue_timeout_seconds=opt_integer(defaults, "queueTimeoutSeconds"),
        cancel_grace_seconds=opt_integer(defaults, "cancelGraceSeconds"),
        max_age_seconds=opt_integer(retention, "maxAgeSeconds"),
        max_finished=opt_integer(retention, "maxFinished"),
        min_age_seconds=opt_integer(retention, "minAgeSeconds"),
        dead_letters_unknown_types=text(spec, "unknownType") == UnknownType.DEAD_LETTER,
        limits=read_limits(spec),
    )
