"""What is nested too deeply is read as far as it goes, and never taken for whole."""

import json
import time
from collections.abc import Callable

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncjob import deep_json
from asyncjob.deep_json import (
    MAX_PARSED_LEVELS,
    MAX_SHOWN_LEVELS,
    MAX_WRITTEN_LEVELS,
    TRUNCATED_TEXT,
    TruncatedObject,
    encode,
    is_deeper,
    loads,
    require_whole,
    truncate_for_display,
    truncate_text,
)
from asyncjob.errors import InvalidError
from asyncjob.json_types import Json, JsonObject

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


CROWDED = b'{"deep":[' + b",".join([nest(1100).encode()] * 1200) + b"]}"
"""What has to be cut so high that the encoder would take the rest of it."""


def test_what_was_cut_is_never_taken_for_whole() -> None:
    with pytest.raises(InvalidError):
        encode(loads(deep(MAX_PARSED_LEVELS + 100)))
    crowded = loads(CROWDED)
    assert isinstance(crowded, TruncatedObject)
    assert not is_deeper(crowded, crowded.levels)
    assert is_deeper(crowded, crowded.levels - 1)
    encode(crowded)
    with pytest.raises(
        InvalidError, match=rf"\({crowded.levels} levels were\), so it is not copied"
    ):
        require_whole(crowded)


def test_what_was_not_cut_is_whole() -> None:
    found = loads(deep(900))
    assert isinstance(found, dict)
    require_whole(found)


def nested(levels: int) -> Json:
    value: Json = orjson.loads(nest(levels))
    return value


@pytest.mark.parametrize("levels", [1, 2, 30, 200, 253, 254, 255, 1000])
def test_levels_are_counted_as_far_as_they_can_be_written(levels: int) -> None:
    value = nested(levels)
    assert is_deeper(value, min(levels - 1, MAX_WRITTEN_LEVELS))
    assert not is_deeper(value, levels) or levels > MAX_WRITTEN_LEVELS
    assert is_deeper([value], MAX_WRITTEN_LEVELS) is (levels >= MAX_WRITTEN_LEVELS)


@pytest.mark.parametrize(
    ("above", "field"),
    [
        (lambda value: {"metadata": {}, "spec": {"type": "t", "payload": value}}, "spec.payload"),
        (
            lambda value: {"spec": {"jobTemplate": {"spec": {"payload": value}}}},
            "spec.jobTemplate.spec.payload",
        ),
        (lambda value: [{"op": "add", "path": "/status/result", "value": value}], "status.result"),
        (lambda value: [{"op": "add", "path": "/status", "value": {"a": value}}], r"status\.a\.a"),
        (lambda value: {"k" * 1000: value}, r"k{63}\.a"),
    ],
)
def test_what_is_too_deep_to_be_written_is_told_by_its_field_and_the_way_out(
    above: Callable[[Json], Json], field: str
) -> None:
    levels = next(left for left in range(MAX_WRITTEN_LEVELS, 0, -1) if not is_beyond(above, left))
    assert orjson.loads(encode(above(nested(levels)))) == above(nested(levels))
    for beyond in (levels + 1, 1000):
        with pytest.raises(InvalidError, match=f"^{field}.*254 levels.*flatter.*as text$"):
            encode(above(nested(beyond)))


def is_beyond(above: Callable[[Json], Json], levels: int) -> bool:
    try:
        orjson.dumps(above(nested(levels)))
    except orjson.JSONEncodeError:
        return True
    return False


def test_what_cannot_be_written_for_another_reason_is_an_error_of_ours() -> None:
    body: JsonObject = {"a": object()}  # type: ignore[dict-item]  # what no caller may give
    with pytest.raises(orjson.JSONEncodeError):
        encode(body)


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
    kept, left = truncate_text(text, levels)
    assert (orjson.loads(kept), left) == (expected(value, levels), levels)


def test_people_are_told_where_something_was_too_deep() -> None:
    told = orjson.dumps(truncate_for_display(orjson.loads(nest(MAX_SHOWN_LEVELS + 5)))).decode()
    assert told == nest(MAX_SHOWN_LEVELS, f'"{TRUNCATED_TEXT}"')
    assert truncate_for_display({"a": [1, {"b": None}]}) == {"a": [1, {"b": None}]}


MEGABYTE = 2**20
AS_LONG_AS_PLAIN_READINGS = 8
"""How often Python's own reader could have read a megabyte of short strings meanwhile: five times
for the dearest of these."""

HOVERING = b"[" * 1100 + b"]" * 100 + b",[]" * (MEGABYTE // 3) + b"]" * 1000
LARGE = {
    "one chain of objects": nest(MEGABYTE // 6).encode(),
    "a level crossed again and again": HOVERING,
    "short strings, and the end of it deep": b'{"x":["a",' + b'"k",' * (MEGABYTE // 4) + b"1" * 9
    + b'],"d":' + nest(2000).encode() + b"}",
    "brackets in strings": b'{"x":[' + b'"[[{",' * (MEGABYTE // 6) + b'1],"d":'
    + nest(2000).encode() + b"}",
}  # fmt: skip


def seconds_of(call: Callable[[], object]) -> float:
    """Return the least processor time that a call takes, of three."""

    def once() -> float:
        began = time.thread_time()
        call()
        return time.thread_time() - began

    return min(once() for _ in range(3))


@pytest.mark.parametrize("data", LARGE.values(), ids=LARGE)
def test_a_megabyte_that_is_too_deep_does_not_hold_the_loop(data: bytes) -> None:
    plain = json.dumps(["[[{"] * (MEGABYTE // 6))
    yardstick = seconds_of(lambda: json.loads(plain))
    assert seconds_of(lambda: loads(data)) < AS_LONG_AS_PLAIN_READINGS * yardstick
    assert loads(data)


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
        assert orjson.loads(truncate_text(text, 1)[0]) == expected
        assert orjson.loads(truncate_text(text, 9)[0]) == value
