"""Logs: what an error may show."""

import json
import logging
from typing import get_args

import pytest

from asyncjob.logs import LogFormat, configure_logging

SECRET = "hunter" + str(2)


@pytest.fixture
def root() -> logging.Logger:
    """Give the root logger."""
    return logging.getLogger()


def fail(password: str) -> None:
    raise ValueError(len(password))


@pytest.mark.parametrize("style", get_args(LogFormat))
def test_an_error_is_logged_with_its_lines_and_never_with_the_values_of_variables(
    style: LogFormat, root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging(style)
    try:
        fail(SECRET)
    except ValueError:
        root.exception("it failed")
    logged = capsys.readouterr().err
    assert "it failed" in logged
    assert "ValueError" in logged
    assert "in fail" in logged or '"name": "fail"' in logged
    assert SECRET not in logged


def test_a_discreet_logger_shows_no_details_even_at_debug(
    root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("json", logging.DEBUG, library_levels={"chatty": logging.INFO})
    for name in ("chatty.inner", "plain"):
        logging.getLogger(name).debug("chunk: %s", SECRET + name)
        logging.getLogger(name).info("told")
    logging.getLogger("chatty").setLevel(logging.NOTSET)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    said = [(line["level"], line["event"]) for line in lines]
    assert said == [("info", "told"), ("debug", f"chunk: {SECRET}plain"), ("info", "told")]
