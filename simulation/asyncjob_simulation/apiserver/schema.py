"""The structural schema of a CRD: what it fills in, drops, refuses, and which rules it has.

The words of refusals are those of a real API server. Not here: ratcheting (a value that is invalid
already may stay), `x-kubernetes-int-or-string`, and `oneOf` and its like: our CRDs have none.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from asyncjob_simulation.apiserver.cel import (
    Activation,
    EvaluationError,
    canonical_time,
    compiled,
)
from asyncjob_simulation.apiserver.errors import PolicyError

Json = Any

_UNCHECKED: Final = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was "
    "invalid; correct the existing errors to complete validation"
)
_NOTHING: Final[Mapping[str, Json]] = {}
_OLD_SELF: Final = re.compile(r"\boldSelf\b")
_UNKNOWN: Final = frozenset({"oneOf", "anyOf", "allOf", "not", "x-kubernetes-int-or-string"})
_TYPES: Final[Mapping[str, Callable[[Json], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


@dataclass(frozen=True, slots=True)
class ValidationRule:
    """A validation in CEL; one that reads `oldSelf` holds for changes only."""

    expression: str
    message: str
    message_expression: str
    field_path: str
    is_transition: bool


@dataclass(slots=True)
class Findings:
    """What is wrong with an object; after a `blocking` error rules are not asked."""

    errors: list[str] = field(default_factory=list)
    blocking: bool = False

    def add(self, path: str, words: str, *, blocking: bool = False) -> None:
        """Note an error of the field."""
        self.errors.append(f"{path or '<nil>'}: {words}")
        self.blocking |= blocking


class Schema:
    """One node of a schema, and by its children all below it."""

    def __init__(self, source: Mapping[str, Any]) -> None:
        if unknown := _UNKNOWN & set(source):
            raise PolicyError(f"the schema uses {sorted(unknown)}, which is not known here")
        self.source = source
        self._type: str | None = source.get("type")
        self._is_type = _TYPES.get(self._type or "", lambda _: True)
        self._required: tuple[str, ...] = tuple(source.get("required", ()))
        self._pattern = re.compile(source["pattern"]) if "pattern" in source else None
        self._nullable: bool = source.get("nullable", False)
        self._is_time = source.get("format") == "date-time"
        self.keeps_unknown: bool = source.get("x-kubernetes-preserve-unknown-fields", False)
        self.is_atomic: bool = (
            source.get("x-kubernetes-map-type") == "atomic" or self._type == "array"
        )
        self.properties = {
            name: Schema(inner) for name, inner in source.get("properties", {}).items()
        }
        additional = source.get("additionalProperties")
        self.additional = Schema(additional) if isinstance(additional, dict) else None
        self.items = Schema(source["items"]) if "items" in source else None
        self.rules = tuple(map(_rule, source.get("x-kubernetes-validations", ())))
        inner: list[Schema] = [
            *self.properties.values(),
            *filter(None, (self.additional, self.items)),
        ]
        self.has_defaults: bool = "default" in source or any(one.has_defaults for one in inner)
        self._with_defaults = [
            (name, one) for name, one in self.properties.items() if one.has_defaults
        ]
        self.has_rules: bool = bool(self.rules) or any(one.has_rules for one in inner)
        self._with_rules = [(name, one) for name, one in self.properties.items() if one.has_rules]
        self.has_times: bool = self._is_time or any(one.has_times for one in inner)

    def pruned(self, value: Json, path: str, unknown: list[str], old: Json = None) -> Json:
        """Return the value without fields that the schema does not name, which are listed.

        What is the very same as in `old` has been through this already.
        """
        if isinstance(value, list):
            if self.items is None or value is old:
                return value
            return [
                self.items.pruned(one, f"{path}[{number}]", unknown)
                for number, one in enumerate(value)
            ]
        if not isinstance(value, dict) or value is old:
            return value
        before = old if isinstance(old, dict) else _NOTHING
        kept = {}
        for name, one in value.items():
            inner = self.properties.get(name) or self.additional
            if inner is not None:
                if isinstance(one, dict | list):
                    where = f"{path}.{name}" if path else name
                    one = inner.pruned(one, where, unknown, before.get(name))  # noqa: PLW2901
                kept[name] = one
            elif self.keeps_unknown:
                kept[name] = one
            else:
                unknown.append(f"{path}.{name}" if path else name)
        return kept

    def defaulted(self, value: Json) -> Json:
        """Return the value with defaults filled in; null counts as absent where null is none."""
        if not self.has_defaults:
            return value
        if isinstance(value, list) and self.items is not None:
            return [self.items.defaulted(one) for one in value]
        if not isinstance(value, dict):
            return value
        filled = dict(value)
        for name, inner in self._with_defaults:
            inner.fill_in(filled, name)
        return filled | self._additional_defaulted(value)

    def _additional_defaulted(self, value: dict[str, Json]) -> dict[str, Json]:
        if self.additional is None:
            return {}
        others = [name for name in value if name not in self.properties]
        return {name: self.additional.defaulted(value[name]) for name in others}

    def fill_in(self, parent: dict[str, Json], name: str) -> None:
        """Fill in defaults of the field that this is the schema of."""
        if name in parent and parent[name] is None and self.drops_null:
            del parent[name]
        if name not in parent and "default" in self.source:
            parent[name] = self.source["default"]
        if name in parent:
            parent[name] = self.defaulted(parent[name])

    @property
    def drops_null(self) -> bool:
        """Whether null is replaced by the default."""
        return "default" in self.source and not self._nullable

    def check(self, value: Json, old: Json, found: Findings) -> None:
        """Add what is wrong with an object; `old` is what it was, or None.

        A part that is the very same as before was valid then; its rules are asked all the same.
        """
        self.validate(value, "", found, old)
        if not found.blocking:
            self.check_rules(value, old, "", found)
        elif self.has_rules:
            found.errors.append(_UNCHECKED)

    def validate(self, value: Json, path: str, found: Findings, old: Json = None) -> None:
        """Add what is wrong with a value, its rules aside; `old` is a valid one, or None."""
        if value is None and (self._nullable or not self._type):
            return
        if not self._is_type(value):
            kind = _kind(value)
            words = f'Invalid value: "{kind}": {path} in body must be of type {self._type}'
            found.add(path, f'{words}: "{kind}"', blocking=True)
            if self._type == "integer" and kind == "number":
                words = f"Checked value must be of type integer (default format) in {path}"
                found.add("", f'Invalid value: "": {words}')
            return
        if isinstance(value, str):
            self._validate_text(value, path, found)
        elif isinstance(value, list):
            self._validate_list(value, path, found)
        elif isinstance(value, dict):
            self._validate_object(value, path, found, old if isinstance(old, dict) else _NOTHING)
        elif not isinstance(value, bool):
            self._validate_number(value, path, found)
        self._validate_enum(value, path, found)

    def _validate_text(self, value: str, path: str, found: Findings) -> None:
        source = self.source
        if len(value) > source.get("maxLength", len(value)):
            most = source["maxLength"]
            found.add(path, f"Too long: may not be more than {most} bytes", blocking=True)
        elif len(value) < source.get("minLength", 0):
            least = source["minLength"]
            words = f"{path} in body should be at least {least} chars long"
            found.add(path, f"Invalid value: {_quoted(value)}: {words}")
        elif self._pattern is not None and not self._pattern.search(value):
            words = f"{path} in body should match '{source['pattern']}'"
            found.add(path, f"Invalid value: {_quoted(value)}: {words}")
        if self._is_time and canonical_time(value) == value and not _is_canonical(value):
            words = f"{path} in body must be of type date-time: {_quoted(value)}"
            found.add(path, f"Invalid value: {_quoted(value)}: {words}", blocking=True)

    def _validate_number(self, value: float, path: str, found: Findings) -> None:
        source = self.source
        words = ""
        if value > source.get("maximum", value):
            words = f"less than or equal to {source['maximum']}"
        elif value < source.get("minimum", value):
            words = f"greater than or equal to {source['minimum']}"
        if words:
            found.add(path, f"Invalid value: {value}: {path} in body should be {words}")

    def _validate_list(self, value: list[Json], path: str, found: Findings) -> None:
        most = self.source.get("maxItems", len(value))
        if len(value) > most:
            words = f"Too many: {len(value)}: must have at most {most} items"
            found.add(path, words, blocking=True)
            return
        least = self.source.get("minItems", 0)
        if len(value) < least:
            words = f"Invalid value: {len(value)}: {path} in body should have at least {least}"
            found.add(path, f"{words} items")
        if self.items is not None:
            for number, one in enumerate(value):
                self.items.validate(one, f"{path}[{number}]", found)

    def _validate_object(
        self, value: dict[str, Json], path: str, found: Findings, old: Mapping[str, Json]
    ) -> None:
        most = self.source.get("maxProperties", len(value))
        if len(value) > most:
            words = f"Too many: {len(value)}: must have at most {most} items"
            found.add(path, words, blocking=True)
            return
        for name in self._required:
            if value.get(name) is None:
                where = f"{path}.{name}" if path else name
                found.add(where, "Required value", blocking=True)
        for name, one in value.items():
            before = old.get(name)
            if one is before and one is not None:
                continue
            inner = self.properties.get(name) or self.additional
            missing = one is None and name in self._required
            if inner is not None and not missing:
                inner.validate(one, f"{path}.{name}" if path else name, found, before)

    def _validate_enum(self, value: Json, path: str, found: Findings) -> None:
        allowed = self.source.get("enum")
        if allowed is not None and value not in allowed:
            listed = ", ".join(json.dumps(one) for one in allowed)
            words = f"Unsupported value: {json.dumps(value)}: supported values: {listed}"
            found.add(path, words, blocking=True)

    def check_rules(self, value: Json, old: Json, path: str, found: Findings) -> None:
        """Add which rules a value breaks, here and below."""
        if not self.has_rules or value is None:
            return
        if self.rules:
            values = {"self": self.for_rules(value)}
            if old is not None:
                values["oldSelf"] = self.for_rules(old)
            activation = Activation(values)
            for rule in self.rules:
                if not rule.is_transition or old is not None:
                    self._check_rule(rule, value, activation, path, found)
        for where, inner, one, before in self._parts(value, old, path):
            inner.check_rules(one, before, where, found)

    @staticmethod
    def _check_rule(
        rule: ValidationRule, value: Json, activation: Activation, path: str, found: Findings
    ) -> None:
        try:
            holds = activation.evaluate(compiled(rule.expression)) is True
        except EvaluationError as error:
            words = f"rule evaluation error: {error}"
            found.add(path, f"Invalid value: {words}")
            return
        if not holds:
            words = f"{_shown(value)}{_message(rule, activation)}"
            found.add(f"{path}{rule.field_path}", f"Invalid value: {words}")

    def _parts(
        self, value: Json, old: Json, path: str
    ) -> Iterator[tuple[str, "Schema", Json, Json]]:
        """Yield what lies directly below and has rules; a list's items are not told apart."""
        if isinstance(value, list):
            if self.items is not None and self.items.has_rules:
                for number, one in enumerate(value):
                    yield f"{path}[{number}]", self.items, one, None
        elif isinstance(value, dict):
            before = old if isinstance(old, dict) else _NOTHING
            for name, inner in self._with_rules:
                if name in value:
                    where = f"{path}.{name}" if path else name
                    yield where, inner, value[name], before.get(name)
            yield from self._additional_parts(value, before, path)

    def _additional_parts(
        self, value: dict[str, Json], before: Mapping[str, Json], path: str
    ) -> Iterator[tuple[str, "Schema", Json, Json]]:
        if self.additional is None or not self.additional.has_rules:
            return
        for name in (one for one in value if one not in self.properties):
            where = f"{path}.{name}" if path else name
            yield where, self.additional, value[name], before.get(name)

    def for_rules(self, value: Json) -> Json:
        """Return a value as rules see it, with times as text that compares as they do."""
        if not self.has_times:
            return value
        if self._is_time:
            return canonical_time(value) if isinstance(value, str) else value
        if isinstance(value, list) and self.items is not None:
            return [self.items.for_rules(one) for one in value]
        if isinstance(value, dict):
            seen = dict(value)
            for name, one in value.items():
                inner = self.properties.get(name) or self.additional
                if inner is not None and inner.has_times:
                    seen[name] = inner.for_rules(one)
            return seen
        return value


def _rule(source: Mapping[str, Any]) -> ValidationRule:
    expression = source["rule"]
    compiled(expression)  # a rule that cannot be asked is found when it is installed
    return ValidationRule(
        expression=expression,
        message=source.get("message", f"failed rule: {expression}"),
        message_expression=source.get("messageExpression", ""),
        field_path=source.get("fieldPath", ""),
        is_transition=bool(_OLD_SELF.search(expression)),
    )


def _message(rule: ValidationRule, activation: Activation) -> str:
    if not rule.message_expression:
        return rule.message
    try:
        return str(activation.evaluate(compiled(rule.message_expression))).strip() or rule.message
    except EvaluationError:
        return rule.message


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    return next((name for name, is_type in _TYPES.items() if is_type(value)), "object")


def _quoted(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _shown(value: Json) -> str:
    """Return a value as refusals by rules show it, which is only where it is a scalar."""
    if isinstance(value, dict | list):
        return ""
    return f"{_quoted(value)}: "


@lru_cache(maxsize=4096)
def _is_canonical(text: str) -> bool:
    return len(text) == len("2026-01-01T00:00:00.000000000Z") and text.endswith("Z")
