"""What the background process tells, and how people read it."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from asyncjob_dev.environment import EnvironmentPaths
from asyncjob_dev.environment.background import status_table, usage_guide
from asyncjob_dev.environment.state import EnvironmentState, RunningPart, load_state, save_state

STATE = EnvironmentState(
    20001, "hello:app", [RunningPart("etcd", 7), RunningPart("worker-1", None, 3)]
)


def test_a_state_comes_back_as_it_was(tmp_path: Path) -> None:
    save_state(tmp_path / "state.json", STATE)
    assert load_state(tmp_path / "state.json") == STATE


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"parts": [{"nme": 1}]}', '{"parts": 1}'])
def test_what_is_no_state_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    assert load_state(tmp_path / "state.json") is None


def test_no_state_is_none(tmp_path: Path) -> None:
    assert load_state(tmp_path / "state.json") is None


def test_the_table_names_what_runs_and_what_has_ended(tmp_path: Path) -> None:
    layout = EnvironmentPaths(tmp_path)
    assert "starting or stopping" in status_table(layout, tmp_path)
    save_state(layout.state, STATE)
    lines = [line.split() for line in status_table(layout, tmp_path).splitlines()]
    assert lines[1][:3] == ["etcd", "7", "0"]
    assert lines[2][:3] == ["worker-1", "ended", "3"]


def test_the_guide_can_be_pasted_from_the_folder_one_is_in(tmp_path: Path) -> None:
    text = usage_guide(EnvironmentPaths(tmp_path / "project" / ".dev"), tmp_path / "project")
    scripts = Path(sys.executable).parent
    assert f"export KUBECONFIG=$PWD/.dev/kubeconfig PATH=$PWD/.dev/bin:{scripts}:$PATH" in text


def test_the_guide_submits_what_the_handlers_know(tmp_path: Path) -> None:
    layout = EnvironmentPaths(tmp_path)
    for app, said in (
        ("examples.handlers:app", "kubectl apply -f examples/flaky-call.yaml"),
        ("hello:app", "asyncjob submit TYPE key=value"),
    ):
        save_state(layout.state, replace(STATE, app=app))
        assert said in usage_guide(layout, tmp_path)


def test_the_table_says_where_the_dashboard_is(tmp_path: Path) -> None:
    layout = EnvironmentPaths(tmp_path)
    save_state(layout.state, STATE)
    port = STATE.gateway_port
    assert f"http://127.0.0.1:{port}/dashboard/" in status_table(layout, tmp_path)
