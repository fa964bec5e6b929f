"""No address leads out of the folder that allows it, however it is written."""

import posixpath
from urllib.parse import unquote

from hypothesis import example, given
from hypothesis import strategies as st

from asyncjob.offload import Address, AddressError, AllowList

FOLDER = Address.folder("file:///data/own")
STEPS = st.sampled_from(
    ["..", ".", "", "a", "own", "data", "%2e%2e", "%252e.", "..%2f..", "%2F", "\\..\\", "..;", " "]
)
TAILS = st.lists(st.one_of(STEPS, st.text(max_size=6)), max_size=6).map("/".join)
HEADS = st.sampled_from(
    ["file:///data/own/", "file:///data/own", "file:///data/", "file://", "file:/", "", "s3://own/"]
)


def decoded(text: str) -> str:
    """Return what the most zealous reader makes of a path."""
    for _ in range(10):
        text = unquote(text).replace("\\", "/")
    return posixpath.normpath(text)


@given(HEADS, TAILS)
@example("file:///data/own/", "a/../../../etc/passwd")
@example("file:///data/own/", "%25252e%25252e/%25252e%25252e/etc/passwd")
@example("file:///data/own", "er/a")
def test_what_is_allowed_lies_in_the_folder_for_every_reader(head: str, tail: str) -> None:
    try:
        address = Address.parse(head + tail)
        AllowList((FOLDER,)).roots(address)
    except AddressError:
        return
    assert decoded(address.path).startswith("/data/own/")
    assert posixpath.normpath(address.path) == address.path


@given(st.lists(st.text(alphabet="abcü -_.", min_size=1, max_size=5), min_size=1, max_size=4))
def test_plain_names_below_the_folder_are_allowed(names: list[str]) -> None:
    kept = [f"n{name}" for name in names]
    address = Address.parse(f"file:///data/own/{'/'.join(kept)}")
    assert AllowList((FOLDER,)).roots(address) == (FOLDER,)
