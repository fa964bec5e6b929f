"""Lines out of pieces."""

import pytest

from asyncjob.line_splitter import LineSplitter


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        ([b"a\nb\n"], [[b"a", b"b"]]),
        ([b"a", b"b", b"\nc"], [[], [], [b"ab"]]),
        ([b"a\n", b"\n", b"b\nc\nd"], [[b"a"], [b""], [b"b", b"c"]]),
        ([b"", b"a", b"", b"\n"], [[], [], [], [b"a"]]),
    ],
)
def test_a_line_comes_with_the_piece_that_ends_it(
    pieces: list[bytes], lines: list[list[bytes]]
) -> None:
    splitter = LineSplitter()
    assert [splitter.feed(piece) for piece in pieces] == lines
