"""What the API server's rules and policies demand of a job's spec, with their words.

The laws themselves are CEL, which nothing here evaluates; each is written out once more, and the
contract tests hold the two together.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from asyncjob.json_types import Json, JsonObject, as_object, flag, integer, items, number, text
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.timestamps import from_text
from asyncjob.schema.laws import shape, wishes
from asyncjob.schema.laws.law import Law
from asyncjob.testing.errors import NotFakedError
from asyncjob.testing.manifests import invalid

_FIXED: Final = dict(zip(wishes.FIXED, wishes.IMMUTABLE, strict=True))

_NOT_FAKED: Final[Mapping[str, str]] = {
    "dependsOn": "create the job once the others have finished",
    "deduplicationId": "test it on a real API server",
    "payloadFrom": "give the payload itself",
}


def check_new(spec: JsonObject) -> None:
    """Raise InvalidError for a spec that no job is created with, NotFakedError for one too hard."""
    _raise(_shape(spec))
    if integer(spec, "redrive") or integer(spec, "rerun"):
        _raise([wishes.UNWISHED])
    for field, way_out in _NOT_FAKED.items():
        if spec.get(field):
            raise NotFakedError(f"the fake cluster does not heed spec.{field}: {way_out}")


def check_change(before: JsonObject, after: JsonObject, phase: Phase) -> None:
    """Raise InvalidError for a change of spec that the API server refuses."""
    _raise(_shape(after))
    _raise(law for name, law in _FIXED.items() if before.get(name) != after.get(name))
    _raise(_changed_wishes(before, after, phase))


def _shape(spec: JsonObject) -> Iterator[Law]:
    start, end = text(spec, "notBefore"), text(spec, "notAfter")
    if start and end and from_text(end) <= from_text(start):
        yield shape.DEADLINE
    names = [text(as_object(one), "name") for one in items(spec, "dependsOn")]
    if len(set(names)) < len(names):
        yield shape.DEPENDENCIES
    if "payloadFrom" in spec and len(as_object(spec["payloadFrom"])) != 1:
        yield shape.SOURCE
    retry = as_object(spec.get("retryPolicy"))
    both = "maxDelaySeconds" in retry and "initialDelaySeconds" in retry
    if both and number(retry, "maxDelaySeconds") < number(retry, "initialDelaySeconds"):
        yield shape.DELAYS


def _changed_wishes(before: JsonObject, after: JsonObject, phase: Phase) -> Iterator[Law]:
    if flag(before, "cancel") and not flag(after, "cancel"):
        yield wishes.CANCEL_LATCHES
    if flag(after, "cancel") and not flag(before, "cancel") and phase is Phase.SUCCEEDED:
        yield wishes.CANCEL_TOO_LATE
    redrives = integer(after, "redrive") - integer(before, "redrive")
    if redrives < 0:
        yield wishes.REDRIVE_GROWS
    if redrives > 0 and phase is not Phase.DEAD_LETTER:
        yield wishes.REDRIVE_DEAD
    if integer(after, "rerun") < integer(before, "rerun"):
        yield wishes.RERUN_GROWS
    if _differs(before, after, "priority") and phase is Phase.RUNNING:
        yield wishes.PRIORITY


def _differs(before: JsonObject, after: JsonObject, name: str) -> bool:
    was: Json = before.get(name)
    return was != after.get(name)


def _raise(broken: Iterator[Law] | list[Law]) -> None:
    for law in broken:
        raise invalid(law.text)
