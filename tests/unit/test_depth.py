"""What is nested too deeply is read as far as it goes, and never taken for whole."""

import json
import time

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncjob import deep_json
from asyncjob.deep_json import (
    MAX_PARSED_LEVELS,
    MAX_SHOWN_LEVELS,
    TRUNCATED_TEXT,
    TruncatedObject,
    loads,
    truncate_for_display,
    truncate_text,
)
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
    assert not isinstance(found, TruncatedObject)
    bottom = found["deep"]
    for _ in range(levels):
        assert isinstance(bottom, dict)
        bottom = bottom["a"]
    assert bottom == 1


@pytest.mark.parametrize("levels", [1024, 1025, 10_000])
def test_of_what_is_too_deep_all_else_is_read(levels: int) -> None:
    found = loads(deep(levels))
    assert isinstance(found, TruncatedObject)
    assert (found["before"], found["after"]) == ("]}", [{"b": 2}])


def test_what_was_cut_cannot_be_written_back() -> None:
    with pytest.raises(orjson.JSONEncodeError):
        orjson.dumps(loads(deep(MAX_PARSED_LEVELS + 100)))


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
    assert orjson.loads(truncate_text(text, levels)) == expected(value, levels)


def test_people_are_told_where_something_was_too_deep() -> None:
    told = orjson.dumps(truncate_for_display(orjson.loads(nest(MAX_SHOWN_LEVELS + 5)))).decode()
    assert told == nest(MAX_SHOWN_LEVELS, f'"{TRUNCATED_TEXT}"')
    assert truncate_for_display({"a": [1, {"b": None}]}) == {"a": [1, {"b": None}]}


MEGABYTE = 2**20
HOVERING = b"[" * 1100 + b"]" * 100 + b",[]" * (MEGABYTE // 3) + b"]" * 1000
LARGE = {
    "one chain of objects": nest(MEGABYTE // 6).encode(),
    "a level crossed again and again": HOVERING,
    "short strings, and the end of it deep": b'{"x":["a",' + b'"k",' * (MEGABYTE // 4) + b"1" * 9
    + b'],"d":' + nest(2000).encode() + b"}",
    "brackets in strings": b'{"x":[' + b'"[[{",' * (MEGABYTE // 6) + b'1],"d":'
    + nest(2000).encode() + b"}",
}  # fmt: skip


@pytest.mark.parametrize("data", LARGE.values(), ids=LARGE)
def test_a_megabyte_that_is_too_deep_does_not_hold_the_loop(data: bytes) -> None:
    began = time.thread_time()
    found = loads(data)
    assert time.thread_time() - began < 0.1
    assert found


def test_a_list_that_is_too_deep_is_read_as_far_as_it_goes() -> None:
    found = loads(b'["before", ' + nest(2000).encode() + b"]")
    assert isinstance(found, list)
    assert found[0] == "before"


@given(st.lists(st.sampled_from(["[", "]", '"', "\\", "a"]), max_size=40), st.integers(0, 7))
def test_strings_are_told_from_brackets_wherever_a_segment_ends(
    characters: list[str], before: int
) -> None:
    inside = "".join(characters)
    value = ["x" * before, inside, [[[]]], {inside: [inside]}]
    text = json.dumps(value).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deep_json, "_SEGMENT_BYTES", 3)
        patch.setattr(deep_json, "_CHUNK_BYTES", 2)
        expected = ["x" * before, inside, None, None]
        assert orjson.loads(truncate_text(text, 1)) == expected
        assert orjson.loads(truncate_text(text, 9)) == value
