"""Contents and names of submissions, whatever is in them."""

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from asyncjob.free_json import canonical_json, digest
from asyncjob.names import is_object_name
from asyncjob.submission import (
    dedup_name_prefix,
    fingerprint_of,
    key_name,
    read_submission,
    sequence_name,
    sequence_of,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=256)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def turned(value: Any) -> Any:
    """Return the same with the keys of all objects the other way round."""
    if isinstance(value, dict):
        return {key: turned(item) for key, item in reversed(value.items())}
    return [turned(item) for item in value] if isinstance(value, list) else value


def as_floats(value: Any) -> Any:
    """Return the same with each small whole number written as 1.0."""
    if isinstance(value, dict):
        return {key: as_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_floats(item) for item in value]
    small = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53
    return float(value) if small else value


def content(payload: Any) -> str:
    return fingerprint_of(read_submission({"type": "t", "payload": payload}))


@given(VALUES)
def test_order_of_keys_and_way_of_writing_numbers_make_no_difference(value: Any) -> None:
    assert content(value) == content(turned(value)) == content(as_floats(value))


@given(VALUES)
def test_a_value_is_the_same_once_it_was_stored_and_read(value: Any) -> None:
    assert canonical_json(json.loads(json.dumps(value))) == canonical_json(value)


@given(VALUES, VALUES)
def test_different_values_have_different_texts(one: Any, other: Any) -> None:
    def typed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: typed(item) for key, item in value.items()}
        if isinstance(value, list):
            return [typed(item) for item in value]
        return ("bool", value) if isinstance(value, bool) else value

    assert (canonical_json(one) == canonical_json(other)) is (typed(one) == typed(other))


@given(st.text("ab-", min_size=1, max_size=5), KEYS, KEYS)
def test_names_are_legal_and_differ_whenever_keys_or_namespaces_do(
    namespace: str, one: str, other: str
) -> None:
    names = {key_name(namespace, key) for key in (one, other)}
    assert len(names) == len({one, other})
    assert names.isdisjoint(
        {dedup_name_prefix(namespace, one), dedup_name_prefix(namespace, other)}
    )
    assert key_name(namespace, one) != key_name(f"{namespace}x", one)
    for name in (*names, sequence_name(dedup_name_prefix(namespace, one), 1)):
        assert is_object_name(name)
        assert len(name) <= 63


@given(st.integers(1, 999_999_998))
def test_later_numbers_come_first(number: int) -> None:
    begin = dedup_name_prefix("ns", "d")
    name, later = sequence_name(begin, number), sequence_name(begin, number + 1)
    assert later < name
    assert sequence_of(name, begin) == number


@given(VALUES)
def test_a_digest_can_be_part_of_a_name_and_of_a_label(value: Any) -> None:
    assert re.fullmatch("[a-z2-7]{52}", digest(value, 52))
