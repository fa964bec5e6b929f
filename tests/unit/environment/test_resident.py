"""What the background process tells, and when it takes it back."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner

from asyncjob_dev.environment import Environment, EnvironmentPaths, daemon
from asyncjob_dev.environment.state import EnvironmentState, RunningPart, acquire_lock, load_state

STATE = EnvironmentState(20001, "a:b", [RunningPart("etcd", 7)])


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    said: list[dict[str, str]] = []
    monkeypatch.setattr(daemon, "send_message", lambda **message: said.append(message))
    return said


def test_one_that_comes_too_late_names_who_was_quicker(
    tmp_path: Path, said: list[dict[str, str]]
) -> None:
    with acquire_lock(EnvironmentPaths(tmp_path).lock):
        done = CliRunner().invoke(daemon.main, [str(tmp_path), json.dumps({})])
        assert done.exit_code == 1
        assert said == [{"in_use_by": EnvironmentPaths(tmp_path).lock.read_text().strip()}]


class Standing(nullcontext[None]):
    """An environment that is up at once; `stopped_with` is the state at its end."""

    def __init__(self, layout: EnvironmentPaths) -> None:
        super().__init__()
        self.layout = layout
        self.plane = self
        self.url = "https://127.0.0.1:20001"
        self.stopped_with: EnvironmentState | None = None

    def __exit__(self, *_error: object) -> None:
        self.stopped_with = load_state(self.layout.state)


def test_what_stops_is_no_longer_told_to_be_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[dict[str, str]]
) -> None:
    layout = EnvironmentPaths(tmp_path)
    kept: list[EnvironmentState | None] = []

    def keep(_environment: Environment) -> None:
        kept.append(load_state(layout.state))
        raise KeyboardInterrupt

    monkeypatch.setattr(daemon, "current_state", lambda _environment: STATE)
    monkeypatch.setattr(daemon, "redirect_stdout_to_log", lambda: None)
    monkeypatch.setattr(daemon, "supervise", keep)
    standing = Standing(layout)
    with pytest.raises(KeyboardInterrupt):
        daemon.run(layout, cast("Environment", standing))
    assert kept == [STATE]
    assert standing.stopped_with == EnvironmentState(20001, "a:b")
