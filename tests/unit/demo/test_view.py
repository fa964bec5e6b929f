"""How the demo shows what kubectl shows."""

import io
import re

from asyncjob_dev.demo.view import LineView, TerminalView, parse_table

FIRST = """\
NAME         PHASE     TYPE         ATTEMPT   PROGRESS   AGE
flaky-call   Queued    flaky.call   0                    1s
slow-count   Running   slow.count   1         20         1s
"""
OLDER = FIRST.replace("1s", "2s")
SECOND = """\
NAME         PHASE       TYPE         ATTEMPT   PROGRESS   AGE
flaky-call   Queued      flaky.call   0                    3s
slow-count   Succeeded   slow.count   1         100        3s
"""


def test_rows_are_read_by_column_even_where_a_cell_is_empty() -> None:
    assert list(parse_table(FIRST)) == [
        ["flaky-call", "Queued", "flaky.call", "0", ""],
        ["slow-count", "Running", "slow.count", "1", "20"],
    ]


def test_no_jobs_are_no_rows() -> None:
    assert list(parse_table("")) == []


def test_lines_tell_what_changed_and_not_that_it_grew_older() -> None:
    stream = io.StringIO()
    view = LineView(stream)
    view.show(FIRST)
    view.show(OLDER)
    view.show(SECOND)
    lines = [re.sub(r"^ *[\d.]+s +", "", line).split() for line in stream.getvalue().splitlines()]
    assert lines[1:] == [
        ["flaky-call", "Queued", "flaky.call", "0"],
        ["slow-count", "Running", "slow.count", "1", "20"],
        ["slow-count", "Succeeded", "slow.count", "1", "100"],
    ]


def test_lines_hold_no_control_characters() -> None:
    stream = io.StringIO()
    view = LineView(stream)
    view.show(FIRST)
    view.note("killed\n")
    assert all(character.isprintable() or character == "\n" for character in stream.getvalue())


def test_a_terminal_has_the_table_drawn_again_in_its_place() -> None:
    stream = io.StringIO()
    view = TerminalView(stream)
    view.show(FIRST)
    view.show(SECOND)
    assert stream.getvalue() == f"{FIRST}\x1b[3A\x1b[J{SECOND}"


def test_on_a_terminal_notes_stand_above_the_table() -> None:
    stream = io.StringIO()
    view = TerminalView(stream)
    view.show(FIRST)
    view.note("killed")
    assert stream.getvalue() == f"{FIRST}\x1b[3A\x1b[Jkilled\n{FIRST}"


def test_on_a_terminal_lines_are_cut_so_that_they_do_not_wrap() -> None:
    stream = io.StringIO()
    TerminalView(stream).show("x" * 10_000)
    assert len(stream.getvalue()) < 1000
