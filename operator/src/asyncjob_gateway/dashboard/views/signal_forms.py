"""The form of a signal that a job waits for, from the JSON schema of what its handler takes.

A flat object gets an input for each field, a single value one input, anything else a field for
JSON. The form sends the schema that it was made from, and what is entered is read by that one: the
handler may have asked for something else meanwhile. Nothing is trusted to it but what type a value
has: who may send a signal may send any JSON, and the handler checks it. Pure.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from asyncjob.json_text import dumps
from asyncjob.json_types import Json, JsonObject, as_object, child, integer, items, opt_text, text
from asyncjob.lifecycle.waits import WaitKind
from asyncjob.models.job_status import Waiting
from asyncjob.rest.jobs import Job
from asyncjob_gateway.dashboard.formatting import format_json

MAX_INPUTS: Final = 30
"""Fields of a flat object that get an input each; an object with more is entered as JSON."""

_MAX_REFERENCES: Final = 8

_DEFINITION: Final = "#/$defs/"
_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?")
_KINDS: Final[Mapping[str, str]] = {"string": "text", "integer": "number", "number": "number"}
_LIMITS: Final[Mapping[str, tuple[Callable[[float, float], bool], str]]] = {
    "minimum": (operator.ge, "at least"),
    "exclusiveMinimum": (operator.gt, "more than"),
    "maximum": (operator.le, "at most"),
    "exclusiveMaximum": (operator.lt, "less than"),
}
_YES_OR_NO: Final[tuple[Json, ...]] = (True, False)


class InputError(ValueError):
    """What was entered cannot be sent; `field` is the name of its field."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}")
        self.field = field
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Option:
    """A value to choose: as JSON, and as it reads."""

    value: str
    label: str


@dataclass(frozen=True, slots=True)
class SignalInput:
    """An input of the form: one field of the payload, or all of it if `name` is empty."""

    name: str
    label: str
    help: str
    kind: str
    required: bool
    value: str
    options: tuple[Option, ...]
    schema: JsonObject
    takes_null: bool

    @property
    def input(self) -> str:
        """Name of the input in the form."""
        return f"value.{self.name}" if self.name else "value"

    @property
    def id(self) -> str:
        """What the help beside it is called on the page, without characters that part ids."""
        return "in-" + re.sub(r"[^A-Za-z0-9_-]", "-", self.name)

    @property
    def step(self) -> str:
        """Step of a number."""
        return "1" if text(self.schema, "type") == "integer" else "any"

    @property
    def least(self) -> Json:
        """Least number that it takes, if there is one."""
        return self.schema.get("minimum")

    @property
    def most(self) -> Json:
        """Greatest number that it takes, if there is one."""
        return self.schema.get("maximum")

    @property
    def max_length(self) -> int:
        """Characters that a text has at most; 0 for any."""
        return integer(self.schema, "maxLength")

    @property
    def takes_empty(self) -> bool:
        """Whether an empty text is a value of its own: of text that nothing restricts to more."""
        schema = self.schema
        restricted = (
            self.options or integer(schema, "minLength") or {"format", "pattern"} & {*schema}
        )
        return text(schema, "type") == "string" and not restricted

    @property
    def must_be_filled(self) -> bool:
        """Whether it may not be left empty, which stands for null where the field takes that."""
        return self.required and not self.takes_null and not self.takes_empty


@dataclass(frozen=True, slots=True)
class SignalForm:
    """The form of one signal; without inputs of its own it takes JSON."""

    name: str
    title: str = ""
    help: str = ""
    schema: str = ""
    shown_schema: str = ""
    has_inputs: bool = False
    inputs: tuple[SignalInput, ...] = ()


def signal_forms(job: Job) -> list[SignalForm]:
    """Return the forms of the signals that a parked job waits for."""
    return [_signal_form(one) for one in job.waiting if one.kind == WaitKind.SIGNAL]


def _signal_form(wait: Waiting) -> SignalForm:
    schema = as_object(wait.payload_schema)
    if not schema:
        return SignalForm(wait.key)
    inputs = _inputs_of(schema)
    shown, _ = format_json(schema)
    return SignalForm(
        wait.key,
        title=text(schema, "title"),
        help=text(schema, "description"),
        schema=dumps(schema).decode(),
        shown_schema=shown,
        has_inputs=inputs is not None,
        inputs=inputs or (),
    )


def read_inputs(schema: Json, form: Mapping[str, Sequence[str]]) -> Json:
    """Return the payload that was entered, by the schema of the form; raises InputError."""
    inputs = _inputs_of(as_object(schema))
    if inputs is None:
        raise InputError("schema", "no form was made from it: load the page again")
    if len(inputs) == 1 and not inputs[0].name:
        return _read(inputs[0], form)
    entered = [one for one in inputs if one.required or _entered(one, form)]
    return {one.name: _read(one, form) for one in entered}


def _entered(one: SignalInput, form: Mapping[str, Sequence[str]]) -> str:
    return form.get(one.input, [""])[0].replace("\r\n", "\n")


def _inputs_of(schema: JsonObject) -> tuple[SignalInput, ...] | None:
    """Return the inputs for what the schema describes; None where JSON has to be entered."""
    plain, takes_null = _resolve(schema, schema)
    if text(plain, "type") != "object":
        one = _input("", schema, schema, required=not takes_null)
        return None if one is None else (one,)
    if "properties" not in plain or takes_null:
        return None
    required = set(filter(None, (opt_text({"": one}, "") for one in items(plain, "required"))))
    found = [
        _input(name, as_object(one), schema, required=name in required)
        for name, one in child(plain, "properties").items()
    ]
    known = [one for one in found if one is not None]
    return tuple(known) if len(known) == len(found) <= MAX_INPUTS else None


def _input(name: str, given: JsonObject, root: JsonObject, *, required: bool) -> SignalInput | None:
    schema, takes_null = _resolve(given, root)
    values = _choices(schema)
    kind = _KINDS.get(text(schema, "type"), "")
    if values is None or not (kind or values):
        return None
    default = schema.get("default")
    return SignalInput(
        name=name,
        label=text(schema, "title") or name or "What it says",
        help=text(schema, "description"),
        kind="date" if text(schema, "format") == "date" else kind,
        required=required,
        value="" if default is None else _text_of(default, choose=bool(values)),
        options=tuple(Option(_json_of(one), _label_of(one)) for one in values),
        schema=schema,
        takes_null=takes_null,
    )


def _resolve(schema: JsonObject, root: JsonObject) -> tuple[JsonObject, bool]:
    """Return the schema with references followed, and whether it takes null besides."""
    takes_null = False
    for _ in range(_MAX_REFERENCES):
        rest = {key: value for key, value in schema.items() if key not in {"$ref", "anyOf"}}
        reference = text(schema, "$ref")
        if reference.startswith(_DEFINITION):
            target = child(child(root, "$defs"), reference.removeprefix(_DEFINITION))
            schema = {**target, **rest}
            continue
        branches = [as_object(one) for one in items(schema, "anyOf")]
        others = [one for one in branches if text(one, "type") != "null"]
        if len(others) != 1 or len(branches) != len(others) + 1:
            break
        schema, takes_null = {**others[0], **rest}, True
    return schema, takes_null


def _choices(schema: JsonObject) -> tuple[Json, ...] | None:
    """Return what there is to choose from, nothing for an input; None for what is no scalar."""
    if "enum" in schema:
        values = tuple(items(schema, "enum"))
    elif "const" in schema:
        values = (schema["const"],)
    else:
        values = _YES_OR_NO if text(schema, "type") == "boolean" else ()
        return values if "anyOf" not in schema and "oneOf" not in schema else None
    return values if values and all(isinstance(one, str | int | float) for one in values) else None


def _json_of(value: Json) -> str:
    return dumps(value).decode()


def _label_of(value: Json) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _text_of(value: Json, *, choose: bool) -> str:
    """Return a default as the input has it."""
    if choose:
        return _json_of(value)
    return str(value) if isinstance(value, str | int | float) else ""


def _read(one: SignalInput, form: Mapping[str, Sequence[str]]) -> Json:
    """Return what was entered, with its type; raises InputError."""
    field, entered = one.name or "payload", _entered(one, form)
    if not entered:
        if one.takes_null:
            return None
        if one.takes_empty and one.input in form:
            return ""
        raise InputError(field, "a value is required")
    if one.options:
        values = [value for value in _choices(one.schema) or () if _json_of(value) == entered]
        if not values:
            raise InputError(field, "is none of the values to choose from")
        return values[0]
    if text(one.schema, "type") == "string":
        return _read_text(field, entered, one.schema)
    return _read_number(field, entered.strip(), one.schema)


def _read_text(field: str, entered: str, schema: JsonObject) -> str:
    least, most = integer(schema, "minLength"), integer(schema, "maxLength", len(entered))
    if not least <= len(entered) <= most:
        bounds = f"{least} to {most}" if "maxLength" in schema else f"at least {least}"
        raise InputError(field, f"takes {bounds} characters, and has {len(entered)}")
    return entered


def _read_number(field: str, entered: str, schema: JsonObject) -> int | float:
    whole = _INTEGER.fullmatch(entered) is not None
    if text(schema, "type") == "integer" and not whole:
        raise InputError(field, "must be a whole number of at most 18 digits")
    if not _NUMBER.fullmatch(entered):
        raise InputError(field, "must be a number, such as 2.5")
    value = int(entered) if whole else float(entered)
    if not math.isfinite(value):
        raise InputError(field, "must be a number, such as 2.5")
    for limit, (is_within, words) in _LIMITS.items():
        bound = schema.get(limit)
        if isinstance(bound, int | float) and not is_within(value, bound):
            raise InputError(field, f"must be {words} {bound:g}")
    return value
