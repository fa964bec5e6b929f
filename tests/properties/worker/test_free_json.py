"""Free JSON, whatever it holds."""

from hypothesis import given
from hypothesis import strategies as st

from asyncjob.free_json import normalize
from asyncjob.json_types import Json

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"])),
)
KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
FREE_JSON: st.SearchStrategy[Json] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(KEYS, inner)),
    max_leaves=20,
)


@given(FREE_JSON)
def test_what_is_plain_json_comes_back_equal(value: Json) -> None:
    assert normalize(value, what="it", max_bytes=10**9) == value


@given(FREE_JSON)
def test_what_was_read_back_can_be_stored_again(value: Json) -> None:
    once = normalize(value, what="it", max_bytes=10**9)
    assert normalize(once, what="it", max_bytes=10**9) == once
