"""What can be stored as free JSON, and what is said of the rest."""

import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any
from unittest.mock import ANY
from uuid import UUID

import pytest
from pydantic import BaseModel, TypeAdapter

from asyncjob.free_json import (
    MAX_DEPTH,
    FreeJsonError,
    TooManyValuesError,
    dump,
    normalize,
    parse,
    replace_unencodable,
    size_of,
)


class Color(Enum):
    RED = "red"


class Loose(BaseModel):
    inner: Any = None


class Model(BaseModel):
    at: datetime


@dataclass
class Point:
    x: float
    inner: Any = None


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        None,
        {"a": None, "b": [None, {}], "c": {"d": {}}, "": []},
        {"n": [0, -1, 1.5, 2**63 - 1, -(2**63), True]},
        "ü€😀",
        nested(MAX_DEPTH),
    ],
)
def test_plain_json_comes_back_as_it_is(value: Any) -> None:
    assert normalize(value, what="it") == value


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Model(at=datetime(2026, 1, 1, tzinfo=UTC)), {"at": "2026-01-01T00:00:00Z"}),
        ([Point(1.5, Color.RED)], [{"x": 1.5, "inner": "red"}]),
        ({"u": UUID(int=1)}, {"u": "00000000-0000-0000-0000-000000000001"}),
        ((1, 2), [1, 2]),
        ([Loose(), Loose(inner={None, 1})], [{"inner": None}, {"inner": ANY}]),
        ({1: "a"}, {"1": "a"}),
    ],
)
def test_models_and_the_like_become_plain(value: Any, plain: Any) -> None:
    assert normalize(value, what="it") == plain


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"a": [{"b": 2**63}]}, r"it\.a\[0\]\.b is an integer beyond 64 bits"),
        ({"a": -(2**63) - 1}, r"it\.a is an integer beyond 64 bits"),
        (2**200, "it is an integer beyond 64 bits"),
        ([Point(1.0, 2**63)], r"it\[0\]\.inner is an integer beyond 64 bits"),
        ({"a": float("nan")}, r"it\.a is nan"),
        ([Point(float("inf"))], r"it\[0\]\.x is inf"),
        (Point(1.0, {"a": [float("nan")]}), r"it\.inner\.a\[0\] is nan"),
        (Loose(inner=float("-inf")), r"it\.inner is -inf"),
        ((1, Loose(inner=[None, Loose(inner={"b": float("nan")})])), r"it\[1\]\..*\.b is nan"),
        (Loose(inner={float("nan")}), r"it\.inner is nan"),
        (nested(MAX_DEPTH + 1), "deeper than 64 levels"),
        (nested(300), "^it is nested deeper than 64 levels$"),
        (nested(5_000), "^it is nested deeper than 64 levels$"),
        (object(), "it is not JSON"),
        (b"\xff", "it is not JSON"),
        ("\udcff", "it is not JSON"),
        ({"\udcff": 1}, "it is not JSON"),
    ],
)
def test_what_cannot_be_stored_is_refused_by_name(value: Any, words: str) -> None:
    with pytest.raises(FreeJsonError, match=words):
        normalize(value, what="it")


def test_a_circle_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(FreeJsonError, match="it is not JSON"):
        normalize(circle, what="it")


def test_the_size_is_that_of_the_encoded_value() -> None:
    assert normalize("x" * 98, what="it", max_bytes=100) == "x" * 98
    with pytest.raises(FreeJsonError, match="it has 101 bytes, the limit is 100"):
        normalize("x" * 99, what="it", max_bytes=100)
    assert size_of("x" * 99) == 101


def test_text_is_made_utf8() -> None:
    assert replace_unencodable("a\udcffb") == "a?b"
    assert replace_unencodable("ü") == "ü"


def test_a_long_key_above_many_values_costs_no_more_than_its_length() -> None:
    values: list[Any] = [[0]] * 100_000
    long = {"k" * 1_000_000: [*values, None]}
    begun = time.process_time()
    assert normalize(long, what="payload", max_bytes=10_000_000) == long
    assert parse(json.dumps(long).encode(), what="body") == long
    assert time.process_time() - begun < 5, "20 s where each value's place is put into words"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (b"[1,2,3]", 8),
        (b'{"a":[],"b":{}}', 17),
        (b'"text, with [brackets] and \\"quotes\\" {,,,"', 1),
        (b'["\\\\",1]', 7),
    ],
)
def test_values_are_counted_before_they_are_read(text: bytes, values: int) -> None:
    parse(text, what="it", max_values=values)
    with pytest.raises(TooManyValuesError, match="it has more than"):
        parse(text, what="it", max_values=values - 1)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (b'{"a":1,"a":1}', '"a"'),
        (b'[{"b":[{"x:y":1,"c":{},"x:y":2}]}]', '"x:y"'),
        (b'{"a":":::","\\u0061":2}', '"a"'),
        (b'{"\\"\\\\":1,"":2,"\\"\\\\":{"d":1}}', r'"\"\\"'),
        (b'{"' + b"k" * 100 + b'":1,"' + b"k" * 100 + b'":2}', '"' + "k" * 63 + '"'),
    ],
)
def test_a_key_given_twice_is_refused_where_that_is_asked_for(text: bytes, key: str) -> None:
    said = f"body has the key {key} twice in one object"
    with pytest.raises(FreeJsonError) as refused:
        parse(text, what="body", unique_keys=True)
    assert str(refused.value) == said
    assert parse(text, what="body")


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":{"a":[{"a":1},{"a":1}]},"b":"{\\"x\\":1,\\"x\\":2}","c":":::"}',
        b'"a:b"',
        b'{"\\\\":":","A":1,"a":2}',
    ],
)
def test_keys_of_different_objects_and_colons_in_text_are_no_repetition(text: bytes) -> None:
    assert parse(text, what="body", unique_keys=True) == json.loads(text)


@pytest.mark.parametrize("levels", [150, 500, 10_000])
def test_text_that_is_too_deep_is_told_so_and_never_that_it_is_no_json(levels: int) -> None:
    text = b"[" * levels + b"]" * levels
    with pytest.raises(FreeJsonError, match=r"nested deeper than 72 levels$"):
        parse(text, what="body", max_depth=72)


def test_a_value_that_is_too_deep_for_its_type_is_told_so() -> None:
    with pytest.raises(FreeJsonError, match=r"^it is nested deeper than 64 levels$"):
        dump(TypeAdapter(dict[str, Any]), {"a": nested(300)}, what="it")


def test_where_something_is_wrong_is_told_among_many() -> None:
    value: Any = [{"ok": [1] * 1000}, {"a": [[], [{"b": 1}, 2**64]], "c": float("1")}]
    with pytest.raises(FreeJsonError, match=r"^it\[1\]\.a\[1\]\[1\] is an integer beyond 64 bits"):
        normalize(value, what="it")
