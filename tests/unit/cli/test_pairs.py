"""Payloads written on the command line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncjob.cli.input.documents import is_pair, parse_payload


def test_pairs_are_text_or_json() -> None:
    words = ["to=ada@example.com", "count:=3", "tags:=[1, null]", "empty=", "query=a=b:=c"]
    assert parse_payload(words) == {
        "to": "ada@example.com",
        "count": 3,
        "tags": [1, None],
        "empty": "",
        "query": "a=b:=c",
    }


@pytest.mark.parametrize("text", ['{"a": 1}', "[1]", '"a=b"', "3", "null", '{"a=b": 1}', '["x=1"]'])
def test_one_word_may_be_json(text: str) -> None:
    assert not is_pair(text)
    assert parse_payload([text]) == json.loads(text)


def test_json_keeps_its_type() -> None:
    assert parse_payload(["3"]) == 3
    assert parse_payload(['{"a": {"b": 1.5}}']) == {"a": {"b": 1.5}}
    assert parse_payload(["null"]) is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{bad"], "'{bad' is not JSON"),
        (["a=1", "b"], "'b' is not a pair"),
        (["a=1", "b" * 1000], "'b{40}…' is not a pair"),
        (["a:=one"], "for text write a="),
        (["a=1", "a=2"], "'a' is given twice"),
        (['{"a": 1, "a": 2}'], "the key 'a' is given twice in one object"),
        (["[" * 100_000], "nested deeper than 64 levels|not JSON"),
        (["[" * 2_000 + "]" * 2_000], "nested deeper than 64 levels"),
    ],
)
def test_what_is_neither_says_how_to_write_it(words: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_payload(words)


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Z"])))
def test_any_text_survives_as_the_value_of_a_pair(value: str) -> None:
    assert parse_payload([f"key={value}"]) == {"key": value}
