"""What is shown while something takes long."""

import io
from collections.abc import Callable

import pytest

from asyncjob_dev.progress import ProgressLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def seven_seconds() -> Callable[[], float]:
    """Return a clock: at the start, at the first line, at the last."""
    return iter([0.0, 0.0, 7.0]).__next__


def fail(stream: io.StringIO) -> None:
    with ProgressLine("building etcd", stream, seven_seconds()):
        raise RuntimeError("no")


def test_a_log_gets_a_line_at_the_start_and_one_at_the_end() -> None:
    stream = io.StringIO()
    with ProgressLine("building etcd", stream, seven_seconds()):
        pass
    assert stream.getvalue() == "building etcd … 0 s\nbuilding etcd … done after 7 s\n"


def test_a_terminal_gets_one_line_that_is_overwritten() -> None:
    stream = Terminal()
    with ProgressLine("building etcd", stream, seven_seconds()):
        pass
    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().count("\r") == 2


def test_a_failure_is_not_called_done() -> None:
    stream = io.StringIO()
    with pytest.raises(RuntimeError):
        fail(stream)
    assert "failed after 7 s" in stream.getvalue()
    assert "done" not in stream.getvalue()


def test_how_far_it_is_stands_in_the_line_until_it_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("asyncjob_dev.progress.LOG_INTERVAL", 0.01)
    stream = io.StringIO()
    with ProgressLine("building etcd", stream, lambda: 0.0) as progress:
        progress.detail = "3 of 9 packages"
        while "3 of 9" not in stream.getvalue():
            pass
    assert "building etcd: 3 of 9 packages … 0 s\n" in stream.getvalue()
    assert stream.getvalue().endswith("building etcd … done after 0 s\n")


def test_a_line_is_never_wider_than_the_terminal_or_it_could_not_be_overwritten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    stream = Terminal()
    with ProgressLine("building kube-apiserver", stream, seven_seconds()):
        pass
    assert stream.getvalue().startswith("\r\x1b[Kbuilding kube-apise\r")
