"""The form of a signal: which inputs it has, and how what is entered becomes JSON."""

from datetime import date
from enum import StrEnum
from typing import Any, Final, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from asyncjob.app.waits import payload_schema
from asyncjob.json_types import Json
from asyncjob.models.job_status import Waiting
from asyncjob_gateway.dashboard.views.signal_forms import (
    MAX_INPUTS,
    InputError,
    SignalForm,
    read_inputs,
    signal_forms,
)
from support.objects.rest_jobs import whole


class Where(StrEnum):
    HERE = "here"
    THERE = "there"


class Approval(BaseModel):
    """Whether it may go out."""

    ok: bool = Field(title="May it go out?", description="It goes out at once.")
    note: str = ""
    replicas: int = Field(3, ge=1, le=9)
    share: float | None = None
    where: Where = Where.HERE
    pace: Literal["slow", "fast", 3] | None = None
    day: date | None = None
    reason: str | None = Field(max_length=5)


def form_of(type_: Any) -> SignalForm:
    schema: Any = payload_schema(TypeAdapter(type_))
    wait = Waiting(kind="Signal", key="go", payload_schema=schema)
    [form] = signal_forms(whole(waiting=[Waiting(kind="Sleep", key="nap"), wait]))
    return form


def entered(type_: Any, **values: str) -> Json:
    schema: Any = payload_schema(TypeAdapter(type_))
    named = {name.replace("__", "."): [text] for name, text in values.items()}
    return read_inputs(schema, named)


def test_a_flat_model_gets_an_input_for_each_field_with_label_and_help() -> None:
    form = form_of(Approval)
    kinds = {one.name: (one.kind, one.required, one.value) for one in form.inputs}

    assert (form.title, form.help) == ("Approval", "Whether it may go out.")
    assert kinds == {
        "ok": ("", True, ""),
        "note": ("text", False, ""),
        "replicas": ("number", False, "3"),
        "share": ("number", False, ""),
        "where": ("text", False, '"here"'),
        "pace": ("", False, ""),
        "day": ("date", False, ""),
        "reason": ("text", True, ""),
    }
    ok, _, replicas, share, where, pace, _, reason = form.inputs
    assert (ok.label, ok.help, ok.input) == ("May it go out?", "It goes out at once.", "value.ok")
    assert [(one.value, one.label) for one in ok.options] == [("true", "yes"), ("false", "no")]
    assert (replicas.step, replicas.least, replicas.most, share.step) == ("1", 1, 9, "any")
    assert [one.label for one in where.options] == ["here", "there"]
    assert [one.value for one in pace.options] == ['"slow"', '"fast"', "3"]
    assert (reason.max_length, reason.takes_null) == (5, True)


def test_what_is_entered_has_the_types_of_the_model_and_empty_fields_are_left_out() -> None:
    sent = entered(
        Approval,
        value__ok="false",
        value__note="true",
        value__replicas="4",
        value__share="0.5",
        value__where='"there"',
        value__pace="3",
        value__day="2026-11-28",
        value__reason="",
    )

    assert sent == {
        "ok": False,
        "note": "true",
        "replicas": 4,
        "share": 0.5,
        "where": "there",
        "pace": 3,
        "day": "2026-11-28",
        "reason": None,
    }
    assert Approval.model_validate(sent).pace == 3
    assert entered(Approval, value__ok="true") == {"ok": True, "reason": None}


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({}, "ok", "a value is required"),
        ({"value__ok": "yes"}, "ok", "none of the values"),
        ({"value__ok": "true", "value__replicas": "2.5"}, "replicas", "must be a whole number"),
        ({"value__ok": "true", "value__replicas": "10"}, "replicas", "must be at most 9"),
        ({"value__ok": "true", "value__replicas": "0"}, "replicas", "must be at least 1"),
        ({"value__ok": "true", "value__share": "much"}, "share", "must be a number"),
        ({"value__ok": "true", "value__share": "1e999"}, "share", "must be a number"),
        ({"value__ok": "true", "value__reason": "because"}, "reason", "0 to 5 characters"),
    ],
)
def test_what_cannot_be_sent_names_its_field(
    values: dict[str, str], field: str, words: str
) -> None:
    with pytest.raises(InputError, match=words) as refused:
        entered(Approval, **values)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("type_", "text", "payload"),
    [
        (bool, "true", True),
        (int, "-7", -7),
        (float, "2", 2),
        (str, "go", "go"),
        (Where, '"there"', "there"),
        (str, "", ""),
        (str | None, "", None),
    ],
)
def test_a_single_value_has_one_input(type_: Any, text: str, payload: Json) -> None:
    [one] = form_of(type_).inputs
    assert one.input == "value"
    assert entered(type_, value=text) == payload


class Texts(BaseModel):
    plain: str
    short: str = Field(max_length=5)
    filled: str = Field(min_length=1)
    shaped: str = Field(pattern="^[a-z]+$")
    day: date
    where: Where
    maybe: str | None


FILLED: Final = {
    "value__plain": "",
    "value__short": "",
    "value__filled": "x",
    "value__shaped": "x",
    "value__day": "2026-11-28",
    "value__where": '"here"',
    "value__maybe": "",
}


def test_a_text_may_be_empty_where_its_type_lets_it() -> None:
    must = {one.name: one.must_be_filled for one in form_of(Texts).inputs}
    assert must == {
        "plain": False,
        "short": False,
        "filled": True,
        "shaped": True,
        "day": True,
        "where": True,
        "maybe": False,
    }
    sent: Any = entered(Texts, **FILLED)
    assert (sent["plain"], sent["short"], sent["maybe"]) == ("", "", None)
    assert Texts.model_validate(sent).plain == ""


@pytest.mark.parametrize("name", ["filled", "shaped", "day", "where"])
def test_a_text_that_may_not_be_empty_is_required(name: str) -> None:
    with pytest.raises(InputError, match="a value is required") as refused:
        entered(Texts, **{**FILLED, f"value__{name}": ""})
    assert refused.value.field == name


def test_a_text_that_the_form_does_not_send_is_not_taken_for_an_empty_one() -> None:
    with pytest.raises(InputError, match="a value is required"):
        entered(str)


class Nested(BaseModel):
    approval: Approval


class Many(BaseModel):
    tags: list[str]


Wide: Any = type(
    "Wide", (BaseModel,), {"__annotations__": {f"f{n}": int for n in range(MAX_INPUTS + 1)}}
)


@pytest.mark.parametrize("type_", [Nested, Many, Wide, list[int], dict[str, bool], int | str])
def test_anything_else_is_entered_as_json_beside_its_schema(type_: Any) -> None:
    form = form_of(type_)

    assert not form.has_inputs
    assert '"' in form.shown_schema
    with pytest.raises(InputError, match="load the page again"):
        entered(type_, value="1")


def test_a_signal_of_which_nothing_is_known_is_entered_as_json() -> None:
    [form] = signal_forms(whole(waiting=[Waiting(kind="Signal", key="go")]))
    assert form == SignalForm("go")


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}},
        {"$ref": "https://elsewhere.example/schema"},
        {"type": ["string"], "enum": "abc"},
        {"type": "object", "properties": {"a": 1}},
        {"type": "object", "properties": [1], "required": 3},
        {"anyOf": [{"type": "null"}, {"type": "null"}]},
        {"type": "string", "maxLength": "x", "title": 4, "default": [1]},
        [1],
    ],
)
def test_what_is_no_schema_that_we_know_breaks_no_page(schema: Any) -> None:
    wait = Waiting(kind="Signal", key="go", payload_schema=schema)
    [form] = signal_forms(whole(waiting=[wait]))
    assert form.name == "go"
