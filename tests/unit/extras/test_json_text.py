"""JSON with orjson and without it: the same bytes, the same values, the same refusals."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncjob import json_text
from asyncjob.json_types import Json

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
)


@given(VALUES)
def test_both_write_the_same_bytes(value: Json) -> None:
    assert json_text.slow_dumps(value) == orjson.dumps(value)
    assert json_text.slow_sorted_dumps(value) == json_text.sorted_dumps(value)


@given(VALUES)
def test_both_read_the_same_values(value: Json) -> None:
    text = orjson.dumps(value)
    assert json_text.slow_loads(text) == orjson.loads(text)


@pytest.mark.parametrize("number", [1e16, 1e-5, 1.5e300, 5e-324, 123456789012345680.0, -0.0])
def test_floats_are_written_alike(number: float) -> None:
    assert json_text.slow_dumps(number) == orjson.dumps(number)


@pytest.mark.parametrize("text", [b"", b"{", b"NaN", b"-Infinity", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_a_value_error(text: bytes) -> None:
    for read in (json_text.slow_loads, json_text.loads):
        with pytest.raises(ValueError):  # noqa: PT011 - the words are the parser's
            read(text)


@pytest.mark.parametrize("value", ["\ud800", object(), {"a": object()}])
def test_what_cannot_be_written_is_a_type_error(value: object) -> None:
    for write in (json_text.slow_dumps, json_text.dumps):
        with pytest.raises(TypeError):
            write(value)
