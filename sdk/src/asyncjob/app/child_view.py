"""A child job as its parent's handler sees it."""

from dataclasses import dataclass

from asyncjob.app.child_errors import ChildFailedError
from asyncjob.json_types import Json, JsonObject, child, integer, text
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase


@dataclass(frozen=True, slots=True)
class ChildRef:
    """Which job a child is."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class ChildView:
    """A child job as it was when it was looked at. `error_…` are empty without an error.

    `result_ref` is as in its status, where the result is kept elsewhere.
    """

    name: str
    uid: str
    type: str
    phase: Phase
    reason: str
    message: str
    attempt: int
    result: Json = None
    result_ref: Json = None
    error_type: str = ""
    error_category: str = ""
    error_message: str = ""

    @property
    def finished(self) -> bool:
        """Whether nothing happens to it without a person."""
        return self.phase in FINISHED_PHASES

    @property
    def succeeded(self) -> bool:
        """Whether it has succeeded."""
        return self.phase is Phase.SUCCEEDED

    def check(self) -> "ChildView":
        """Return itself; raises ChildFailedError unless it has succeeded."""
        if not self.succeeded:
            why = f"{self.reason}: {self.message}".strip(": ")
            raise ChildFailedError(f"child {self.name} ended as {self.phase.value} ({why})")
        return self


def read_child(obj: JsonObject) -> ChildView:
    """Read an AsyncJob; raises ValueError on a phase this version does not know."""
    meta, status = child(obj, "metadata"), child(obj, "status")
    error = child(status, "error")
    return ChildView(
        name=text(meta, "name"),
        uid=text(meta, "uid"),
        type=text(child(obj, "spec"), "type"),
        phase=Phase(text(status, "phase", Phase.QUEUED)),
        reason=text(status, "reason"),
        message=text(status, "message"),
        attempt=integer(status, "attempt"),
        result=status.get("result"),
        result_ref=status.get("resultRef"),
        error_type=text(error, "type"),
        error_category=text(error, "category"),
        error_message=text(error, "message"),
    )
