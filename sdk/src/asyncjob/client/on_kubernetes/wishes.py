"""What a user may ask of a job that exists: fields of its spec that the operator acts on.

A wish is decided on what was read and written once. A lost answer is followed by another look: a
wish that has come to be, or been acted on, by then is not made again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from asyncjob.client import errors
from asyncjob.client.on_kubernetes.calls import patch, resource_version
from asyncjob.client.steps import Call, Pause, Steps, patiently
from asyncjob.errors import ConflictError, InvalidError
from asyncjob.json_types import Json, JsonObject, child, flag, integer, text
from asyncjob.lifecycle.phases import Phase

TRIES: Final = 10
LOOK_SECONDS: Final = 0.3

Decide = Callable[[JsonObject], JsonObject | None]
"""Spec of the job as read → what to change of it, None for nothing; raises where it may not be."""


Check = Callable[[JsonObject, float], Steps[None]]
"""Job as read and patience → nothing; raises where what else there is forbids the wish."""


def wished(
    path: str, decide: Decide, patience: float, check: Check | None = None
) -> Steps[JsonObject]:
    """Make the wish and return the job; NotFoundError passes through."""
    refusal: InvalidError | None = None
    for _ in range(TRIES):
        job = (yield from patiently(Call("GET", path), patience)).object
        change = decide(job)
        if change is None:
            return job
        if refusal is not None:
            raise errors.JobStateError(str(refusal)) from refusal
        if check is not None:
            yield from check(job, patience)
        body = {"metadata": {"resourceVersion": resource_version(job)}, "spec": change}
        try:
            return (yield from patiently(patch(path, body), patience)).object
        except ConflictError:
            continue
        except InvalidError as error:
            refusal = error
    raise errors.UnavailableError("the object changes faster than the wish can be written")


def cancel(*, cascade: bool) -> Decide:
    """Return the wish to cancel, or to dismiss a dead letter."""

    def decide(job: JsonObject) -> JsonObject | None:
        spec, phase = child(job, "spec"), _phase(job)
        if phase is Phase.SUCCEEDED:
            raise errors.NotCancellableError(
                f"job {_name(job)} has succeeded: there is nothing left to cancel"
            )
        wanted: dict[str, Json] = {"cancel": True, **({"cancelCascade": True} if cascade else {})}
        done = phase is Phase.CANCELLED and not cascade
        return None if done or all(flag(spec, name) for name in wanted) else wanted

    return decide


def dismiss(job: JsonObject) -> JsonObject | None:
    """Return the wish to be done with a dead letter."""
    spec = child(job, "spec")
    if flag(spec, "cancel") and _phase(job) in {Phase.DEAD_LETTER, Phase.CANCELLED}:
        return None
    _check_dead(job)
    return {"cancel": True}


def setting(name: str, value: Json, otherwise: Json) -> Decide:
    """Return the wish that a field has a value; `otherwise` is what an absent one means."""

    def decide(job: JsonObject) -> JsonObject | None:
        return None if child(job, "spec").get(name, otherwise) == value else {name: value}

    return decide


@dataclass(slots=True)
class Redrive:
    """The wish to run a dead letter again; settled on a number by the first look."""

    number: int = 0

    def __call__(self, job: JsonObject) -> JsonObject | None:
        """Decide."""
        asked, done = _numbers(job, "redrive", "redrives")
        if (self.number and max(asked, done) >= self.number) or asked > done:
            return None
        _check_dead(job)
        self.number = max(asked, done) + 1
        return {"redrive": self.number}


@dataclass(slots=True)
class Numbered:
    """A wish by number of which each is to be acted on: `wish` in spec, `twin` in status."""

    wish: str
    twin: str
    number: int = 0

    def __call__(self, obj: JsonObject) -> JsonObject | None:
        """Decide; ask `open` first whether an earlier wish is still to be acted on."""
        asked, done = _numbers(obj, self.wish, self.twin)
        if self.number and max(asked, done) >= self.number:
            return None
        self.number = max(asked, done) + 1
        return {self.wish: self.number}

    def open(self, obj: JsonObject) -> bool:
        """Return whether an earlier wish is open: raising the number would take its place."""
        asked, done = _numbers(obj, self.wish, self.twin)
        return asked > done


def one_more(path: str, wish: Numbered, patience: float) -> Steps[JsonObject]:
    """Make the wish once the one before has been acted on; returns the object."""
    since: float | None = None
    while True:
        answer = yield from patiently(Call("GET", path), patience)
        if not wish.open(answer.object):
            return (yield from wished(path, wish, patience))
        since = answer.at if since is None else since
        if answer.at - since >= patience:
            raise errors.UnavailableError(
                f"spec.{wish.wish}: an earlier one has not been acted on; does the operator run?"
            )
        yield Pause(LOOK_SECONDS)


def _numbers(obj: JsonObject, wish: str, twin: str) -> tuple[int, int]:
    return integer(child(obj, "spec"), wish), integer(child(obj, "status"), twin)


def _check_dead(job: JsonObject) -> None:
    if _phase(job) is not Phase.DEAD_LETTER:
        raise errors.NotADeadLetterError(
            f"job {_name(job)} is {_phase(job).value}; only a dead letter can be redriven or"
            " dismissed"
        )


def _phase(job: JsonObject) -> Phase:
    return Phase(text(child(job, "status"), "phase", Phase.QUEUED))


def _name(job: JsonObject) -> str:
    return text(child(job, "metadata"), "name")
