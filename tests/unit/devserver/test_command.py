"""`asyncjob dev`: where it comes from, and what it says when it cannot start."""

import os
import platform
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from asyncjob.cli import command_classes
from asyncjob.cli.exit_codes import ExitCode
from asyncjob_dev.environment import EnvironmentPaths
from asyncjob_dev.environment.state import acquire_lock
from asyncjob_dev.errors import (
    DataDirInUseError,
    DevError,
    FolderUnusableError,
    NoFreePortError,
    TemporaryFolderError,
)
from asyncjob_dev.process import process_died_error
from asyncjob_dev.rehearsal.distributions import run
from asyncjob_dev.server import server
from asyncjob_dev.server.command import explained
from asyncjob_dev.server.folder import make_folder
from asyncjob_dev.server.server import Ends
from asyncjob_dev.supervisor import DevWorker
from support.parts.cli_shell import Shell


@pytest.fixture
def shell() -> Shell:
    return Shell()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[Path, Mapping[str, Any]]]:
    """Return what is asked of the server, which is not started."""
    asked: list[tuple[Path, Mapping[str, Any]]] = []

    def serve(folder: Path, project: Path, choices: Mapping[str, Any]) -> None:
        assert project == tmp_path
        asked.append((folder, choices))

    monkeypatch.setattr(server, "serve", serve)
    monkeypatch.chdir(tmp_path)
    return asked


def test_without_choices_the_built_in_handlers_run(
    shell: Shell, asked: list[tuple[Path, Mapping[str, Any]]], tmp_path: Path
) -> None:
    shell.ok("dev")
    [(folder, choices)] = asked
    assert folder == tmp_path / ".asyncjob"
    assert choices == {
        "app": "asyncjob_worker.builtin:app",
        "queues": "default",
        "workers": 1,
        "slots": 4,
        "gateway_port": None,
        "api_port": None,
        "reload": True,
        "wipe": False,
    }


def test_what_is_chosen_is_passed_on(
    shell: Shell, asked: list[tuple[Path, Mapping[str, Any]]]
) -> None:
    shell.ok("dev", "hello:app", "--queues=a,b", "--workers=2", "--port=8123", "--no-reload")
    [(_, choices)] = asked
    assert (choices["app"], choices["queues"], choices["workers"]) == ("hello:app", "a,b", 2)
    assert (choices["gateway_port"], choices["reload"]) == (8123, False)


def test_without_the_distribution_the_one_to_install_is_named(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_classes, "entry_points", lambda **_: metadata.EntryPoints())
    for words in (["dev"], ["dev", "hello:app", "--workers=2"], ["dev", "--help"]):
        done = shell(*words)
        assert done.exit_code == ExitCode.USAGE
        assert done.stderr == (
            "error: asyncjob dev comes with asyncjob-dev: pip install asyncjob-dev "
            "(asyncjob dev --help)\n"
        )
    assert "dev" in shell.ok("--help")


def test_a_system_that_cannot_run_it_is_told_before_anything_else(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, asked: list[tuple[Path, Mapping[str, Any]]]
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    done = shell("dev", "hello:app")
    assert done.exit_code == ExitCode.FAILED
    assert "Windows is not supported" in done.stderr
    assert "WSL 2" in done.stderr
    assert "(asyncjob explain dev-system)" in done.stderr
    assert asked == []


def test_nothing_is_imported_that_another_system_does_not_have() -> None:
    script = "import sys; sys.modules['fcntl'] = None; import asyncjob_dev.server.command"
    run([sys.executable, "-c", script])


def test_macos_is_said_to_be_untried(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, asked: list[tuple[Path, Mapping[str, Any]]]
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert "has not been tried on this system" in shell("dev").stderr
    assert len(asked) == 1


def test_a_port_that_is_taken_is_named_before_anything_starts(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for option in ("--port", "--api-port"):
            done = shell("dev", f"{option}={port}")
            assert done.exit_code == ExitCode.USAGE
            assert done.stderr.startswith(f"error: port {port} is taken")
            assert f"leave {option} out" in done.stderr
            assert "(asyncjob explain port-taken)" in done.stderr


def test_what_a_part_says_of_its_own_end_is_not_explained_twice() -> None:
    said = "Error: cannot serve jobs; choose another --port (asyncjob explain port-taken)"
    died = process_died_error("gateway", 1, f"address already in use\n{said}\n")
    assert explained(died).count("asyncjob explain") == 1
    refused = process_died_error("operator", 1, "Error: no (asyncjob explain no-cluster)")
    assert explained(refused).endswith("(asyncjob explain no-cluster)")
    silent = process_died_error("etcd", 1, "address already in use")
    assert explained(silent).endswith("(asyncjob explain port-taken)")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FolderUnusableError(Path("data"), OSError("no")), "dev-folder"),
        (TemporaryFolderError(OSError("no")), "dev-folder"),
        (DataDirInUseError(Path("data")), "dev-running"),
        (NoFreePortError("no 3 free ports"), "port-taken"),
    ],
)
def test_what_is_explained_is_what_helps(error: DevError, code: str) -> None:
    assert explained(error) == f"{error} (asyncjob explain {code})"


@pytest.mark.parametrize("words", [["--folder=file/data"], ["--demo", "--folder=file/data"]])
def test_a_folder_that_was_named_and_cannot_be_used_is_a_wrong_option(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    done = shell("dev", *words)
    assert done.exit_code == ExitCode.USAGE
    assert done.stderr == (
        f"error: cannot use the folder {tmp_path}/file/data: Not a directory; choose one you may "
        "write. (asyncjob explain dev-folder)\n"
    )


def test_the_usual_folder_that_cannot_be_used_is_no_wrong_option(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".asyncjob/.gitignore").mkdir(parents=True)
    done = shell("dev")
    assert done.exit_code == ExitCode.FAILED
    assert "(asyncjob explain dev-folder)" in done.stderr


def test_a_second_one_in_the_folder_says_which_process_has_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with acquire_lock(EnvironmentPaths(tmp_path / ".asyncjob").lock):
        done = shell("dev")
    assert done.exit_code == ExitCode.FAILED
    assert f"already runs in {tmp_path}/.asyncjob, as process {os.getpid()}" in done.stderr
    assert "(asyncjob explain dev-running)" in done.stderr


def test_an_app_that_cannot_be_imported_is_told_before_anything_starts(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hello.py").write_text("def greet(:\n")
    done = shell("dev", "hello:app")
    assert done.exit_code == ExitCode.USAGE
    said = "error: 'hello:app' cannot be run: cannot import hello: SyntaxError"
    assert done.stderr.startswith(said)
    assert "(asyncjob explain app-not-loaded)" in done.stderr


def test_no_job_is_forgotten_for_an_app_that_cannot_be_imported(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = EnvironmentPaths(tmp_path / ".asyncjob")
    paths.control_plane.mkdir(parents=True)
    done = shell("dev", "nomodule", "--wipe")
    assert done.exit_code == ExitCode.USAGE
    assert "no module named 'nomodule'" in done.stderr
    assert paths.control_plane.is_dir()


def test_an_app_without_a_module_is_told_how_to_name_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    done = shell("dev", ":")
    assert done.exit_code == ExitCode.USAGE
    assert "give it as module:attribute, or as module for its app" in done.stderr


def test_the_folder_is_kept_out_of_the_projects_repository(tmp_path: Path) -> None:
    make_folder(tmp_path / ".asyncjob")
    assert (tmp_path / ".asyncjob/.gitignore").read_text() == "*\n"


@dataclass
class Part:
    name: str = "worker-1"
    unasked_ends: int = 0
    process: Any = field(default_factory=lambda: SimpleNamespace(log_file=Path("log")))


def test_an_end_is_told_at_first_and_then_now_and_then() -> None:
    part = Part()
    ends = Ends([cast("DevWorker", part)])
    told: list[str] = []
    for part.unasked_ends in range(9):
        told += ends.new()
    assert told == [
        "worker-1 ended and is started again: log",
        "worker-1 ended (2 times by now) and is started again: log",
        "worker-1 ended (4 times by now) and is started again: log",
        "worker-1 ended (8 times by now) and is started again: log",
    ]
