"""Which app a worker runs when the command line names none."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from asyncjob_worker.app_loader import load_app
from asyncjob_worker.cli import BUILT_IN_APP, main


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Let the worker get as far as looking for a cluster, after it has loaded its app."""
    return {"POD_NAME": "p", "POD_UID": "u", "KUBECONFIG": str(tmp_path / "none")}


def test_the_default_is_the_app_with_the_built_in_handlers(env: dict[str, str]) -> None:
    assert {"http", "echo", "sleep"} <= set(load_app(BUILT_IN_APP).handlers)
    ended = CliRunner().invoke(main, ["run"], env={**env, "ASYNCJOB_WORKER_APP": None})
    assert ended.exit_code == 1
    assert "no cluster is configured" in ended.output


def test_a_variable_names_another_and_the_argument_wins(env: dict[str, str]) -> None:
    named = {**env, "ASYNCJOB_WORKER_APP": "nowhere:app"}
    assert "cannot import nowhere" in CliRunner().invoke(main, ["run"], env=named).output
    ended = CliRunner().invoke(main, ["run", "elsewhere"], env=named)
    assert "cannot import elsewhere" in ended.output
