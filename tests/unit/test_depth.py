"""What is nested too deeply is read as far as it goes, and never taken for whole."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncjob.depth import CUT, DEEPEST, SHOWN, Shallow, cut_text, loads, shown
from asyncjob.json_types import Json

NAMES = st.text('{}[]",\\\\ aé\\n', max_size=5)
DOCUMENTS: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.integers(-5, 5) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
)


def nest(levels: int, inside: str = "1") -> str:
    return '{"a":' * levels + inside + "}" * levels


def deep(levels: int) -> bytes:
    return f'{{"before": "]}}", "deep": {nest(levels)}, "after": [{{"b": 2}}]}}'.encode()


@pytest.mark.parametrize("levels", [1, 500, 1023])
def test_what_the_parser_reads_is_read_whole(levels: int) -> None:
    found = loads(deep(levels))
    assert isinstance(found, dict)
    assert not isinstance(found, Shallow)
    bottom = found["deep"]
    for _ in range(levels):
        assert isinstance(bottom, dict)
        bottom = bottom["a"]
    assert bottom == 1


@pytest.mark.parametrize("levels", [1024, 1025, 10_000])
def test_of_what_is_too_deep_all_else_is_read(levels: int) -> None:
    found = loads(deep(levels))
    assert isinstance(found, Shallow)
    assert (found["before"], found["after"]) == ("]}", [{"b": 2}])


def test_what_was_cut_cannot_be_written_back() -> None:
    with pytest.raises(orjson.JSONEncodeError):
        orjson.dumps(loads(deep(DEEPEST + 100)))


@pytest.mark.parametrize("broken", [b"", b"{", b'{"a": tru}', b'{"a": 1'])
def test_what_is_no_json_is_refused_as_ever(broken: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        loads(broken)


@given(DOCUMENTS, st.integers(1, 4))
def test_a_cut_leaves_json_with_nothing_below_it_and_all_above(value: Json, levels: int) -> None:
    def expected(one: Json, left: int) -> Json:
        if isinstance(one, dict):
            return {key: expected(it, left - 1) for key, it in one.items()} if left else None
        if isinstance(one, list):
            return [expected(it, left - 1) for it in one] if left else None
        return one

    text = json.dumps(value, ensure_ascii=False).encode()
    assert orjson.loads(cut_text(text, levels)) == expected(value, levels)


def test_people_are_told_where_something_was_too_deep() -> None:
    told = orjson.dumps(shown(orjson.loads(nest(SHOWN + 5)))).decode()
    assert told == nest(SHOWN, f'"{CUT}"')
    assert shown({"a": [1, {"b": None}]}) == {"a": [1, {"b": None}]}
