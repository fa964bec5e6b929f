"""From a model of Z3's to the objects it speaks of: JSON that the API server's schema accepts."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, Final, cast

import z3

from asyncjob.json_types import JsonObject, as_object, child, texts
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob_dev.proofs.rules.admission import Requester
from asyncjob_dev.proofs.rules.intervals import ascends, is_notation, items_of, parts_of, written
from asyncjob_dev.proofs.rules.symbols import (
    Amount,
    Choice,
    Code,
    Number,
    Record,
    Sequence,
    Symbol,
    Truth,
    code_of,
)
from asyncjob_dev.proofs.rules.versions import Step

_START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_APART: Final = 1000
"""Between where the numbers of one notation begin and those of the next."""

_NAMED: Final = {
    code_of(text): text
    for text in ("", "True", "Complete", "Failed", "Cancelled", "Signal", "Sleep")
}
"""Texts that rules name."""


@dataclass
class Rendering:
    """Writes objects out; one text or time for each code that the model has."""

    model: z3.ModelRef
    seen: dict[int, int] = field(default_factory=dict)

    def object(self, value: Record, schema: JsonObject) -> dict[str, Any]:
        """Return an object with the fields that are present."""
        properties, of_keys = child(schema, "properties"), schema.get("additionalProperties")
        return {
            name: self._value(entry.value, as_object(properties.get(name, of_keys)))
            for name, entry in value.fields.items()
            if z3.is_true(self._known(entry.present))
        }

    def requester(self, step: Step) -> Requester:
        """Return who writes."""
        return Requester(
            pod=self._text(self._number(step.pod.code)),
            pod_uid=self._text(self._number(step.pod_uid.code)),
            operates=z3.is_true(self._known(step.operates)),
            is_worker=z3.is_true(self._known(step.is_worker)),
        )

    def _known(self, term: z3.ExprRef) -> z3.ExprRef:
        return cast("z3.ExprRef", self.model.eval(term, model_completion=True))

    def _number(self, term: Number) -> int:
        return int(cast("z3.IntNumRef", self._known(term)).as_long())

    def _value(self, value: Symbol, schema: JsonObject) -> Any:
        match value:
            case Truth(is_true):
                return z3.is_true(self._known(is_true))
            case Amount(number):
                return self._amount(number)
            case Choice(options):
                return next(text for text, when in options.items() if z3.is_true(self._known(when)))
            case Record():
                return self.object(value, schema)
            case Sequence():
                return self._list(value, child(schema, "items"))
            case Code(code):
                return self._coded(self._number(code), schema)
        raise TypeError(value)

    def _amount(self, number: Number) -> int | float:
        found = self._known(number)
        if isinstance(found, z3.IntNumRef):
            return int(found.as_long())
        exact: Fraction = cast("z3.RatNumRef", found).as_fraction()
        return int(exact) if exact.denominator == 1 else float(exact)

    def _list(self, value: Sequence, schema: JsonObject) -> list[Any]:
        size = self._number(value.size)
        if value.entries:
            return [self._value(entry, schema) for entry in value.entries[:size]]
        content = self._number(value.content)
        if schema.get("type") == "integer":
            return [self._ordinal(content) + place for place in range(size)]
        return [f"{self._text(content) or 'text'}-{place}" for place in range(size)]

    def _coded(self, code: int, schema: JsonObject) -> Any:
        if "properties" in schema:
            return self._object_of(code, schema)
        if schema.get("format") == "date-time":
            return format_timestamp(_START + timedelta(seconds=self._ordinal(code)))
        if is_notation(schema):
            return self._notation(code)
        if schema.get("type") == "string":
            return self._text(code)
        named = f"value-{self._ordinal(code)}"
        return {named: []} if "additionalProperties" in schema else {"value": named}

    def _notation(self, code: int) -> str:
        """Return interval notation of which all is true that the model says of it."""
        if not code:
            return ""
        value = z3.IntVal(code)
        items, parts = self._number(items_of(value)), self._number(parts_of(value))
        forwards = z3.is_true(self._known(ascends(value)))
        return written(items, parts, _APART * self._ordinal(code), forwards=forwards)

    def _object_of(self, code: int, schema: JsonObject) -> dict[str, Any]:
        """Return an object that stands for a code: what it needs, and numbers that tell it."""
        needed = {
            name: child(child(schema, "properties"), name) for name in texts(schema, "required")
        }
        return {name: self._field_of(code, field) for name, field in needed.items()}

    def _field_of(self, code: int, schema: JsonObject) -> Any:
        if schema.get("type") == "integer":
            return self._ordinal(code)
        # The code is that of the object, and not of a text that rules name.
        return f"text-{self._ordinal(code)}" if "minLength" in schema else self._coded(code, schema)

    def _text(self, code: int) -> str:
        return _NAMED[code] if code in _NAMED else f"text-{self._ordinal(code)}"

    def _ordinal(self, code: int) -> int:
        return self.seen.setdefault(code, len(self.seen) + 1)
