"""What the API server's rules and policies demand of a job's spec, with their words.

The laws themselves are CEL, which nothing here evaluates; each is written out once more, and the
contract tests hold the two together.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from asyncjob.json_types import Json, JsonObject, as_object, flag, integer, items, number, text
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.timestamps import parse_timestamp
from asyncjob.schema.laws import shape, wishes
from asyncjob.schema.laws.law import Rule
from asyncjob.testing.errors import NotFakedError
from asyncjob.testing.manifests import invalid_error

_IMMUTABLE_FIELDS: Final = dict(
    zip(wishes.IMMUTABLE_FIELDS, wishes.IMMUTABLE_FIELD_RULES, strict=True)
)

_UNSUPPORTED_SPEC_FIELDS: Final[Mapping[str, str]] = {
    "dependsOn": "create the job once the others have finished",
    "deduplicationId": "test it on a real API server",
    "payloadFrom": "give the payload itself",
}


def check_new_spec(spec: JsonObject) -> None:
    """Raise InvalidError for a spec that no job is created with, NotFakedError for one too hard."""
    _raise_first(_broken_shape_rules(spec))
    if integer(spec, "redrive") or integer(spec, "rerun"):
        _raise_first([wishes.NO_COUNTERS_AT_CREATION])
    for field, way_out in _UNSUPPORTED_SPEC_FIELDS.items():
        if spec.get(field):
            raise NotFakedError(f"the fake cluster does not heed spec.{field}: {way_out}")


def check_spec_change(before: JsonObject, after: JsonObject, phase: Phase) -> None:
    """Raise InvalidError for a change of spec that the API server refuses."""
    _raise_first(_broken_shape_rules(after))
    _raise_first(
        law for name, law in _IMMUTABLE_FIELDS.items() if before.get(name) != after.get(name)
    )
    _raise_first(_broken_control_rules(before, after, phase))


def _broken_shape_rules(spec: JsonObject) -> Iterator[Rule]:
    start, end = text(spec, "notBefore"), text(spec, "notAfter")
    if start and end and parse_timestamp(end) <= parse_timestamp(start):
        yield shape.SHAPE_DEADLINE
    names = [text(as_object(one), "name") for one in items(spec, "dependsOn")]
    if len(set(names)) < len(names):
        yield shape.SHAPE_DEPENDENCIES
    if "payloadFrom" in spec and len(as_object(spec["payloadFrom"])) != 1:
        yield shape.SHAPE_ONE_SOURCE
    retry = as_object(spec.get("retryPolicy"))
    both = "maxDelaySeconds" in retry and "initialDelaySeconds" in retry
    if both and number(retry, "maxDelaySeconds") < number(retry, "initialDelaySeconds"):
        yield shape.SHAPE_DELAYS


def _broken_control_rules(before: JsonObject, after: JsonObject, phase: Phase) -> Iterator[Rule]:
    if flag(before, "cancel") and not flag(after, "cancel"):
        yield wishes.CANCEL_LATCHES
    if flag(after, "cancel") and not flag(before, "cancel") and phase is Phase.SUCCEEDED:
        yield wishes.CANCEL_TOO_LATE
    redrives = integer(after, "redrive") - integer(before, "redrive")
    if redrives < 0:
        yield wishes.REDRIVE_GROWS
    if redrives > 0 and phase is not Phase.DEAD_LETTER:
        yield wishes.REDRIVE_DEAD_LETTER
    if integer(after, "rerun") < integer(before, "rerun"):
        yield wishes.RERUN_GROWS
    if _differs(before, after, "priority") and phase is Phase.RUNNING:
        yield wishes.PRIORITY_WHILE_RUNNING


def _differs(before: JsonObject, after: JsonObject, name: str) -> bool:
    was: Json = before.get(name)
    return was != after.get(name)


def _raise_first(broken: Iterator[Rule] | list[Rule]) -> None:
    for law in broken:
        raise invalid_error(law.message_text)
