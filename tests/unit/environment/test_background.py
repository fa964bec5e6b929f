"""Starting in the background: where, and what is told when it fails."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.environment import EnvironmentPaths, EnvironmentSettings, background, components
from asyncjob_dev.environment.components import install
from asyncjob_dev.environment.state import EnvironmentState, save_state
from asyncjob_dev.errors import (
    EnvironmentInUseError,
    FolderUnusableError,
    ManifestsMissingError,
    StartFailedError,
)
from asyncjob_dev.ports import free_port


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EnvironmentPaths:
    class NoResolver:
        def resolve_all(self) -> None:
            pass

    monkeypatch.setattr(background, "default_resolver", NoResolver)
    layout = EnvironmentPaths(tmp_path)
    layout.make()
    return layout


def resident(monkeypatch: pytest.MonkeyPatch, script: str) -> list[subprocess.Popen[str]]:
    """Have this run in the place of the background process."""
    started: list[subprocess.Popen[str]] = []

    def spawn(_layout: EnvironmentPaths, _settings: EnvironmentSettings) -> subprocess.Popen[str]:
        argv = [sys.executable, "-c", script]
        started.append(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
        return started[-1]

    monkeypatch.setattr(background, "_spawn_daemon", spawn)
    return started


def test_the_port_stays_where_it_was_if_it_is_free(layout: EnvironmentPaths) -> None:
    port = free_port()
    save_state(layout.state, EnvironmentState(port, "a:b"))
    assert background._api_port(layout, EnvironmentSettings()) == port
    with socket.create_server(("127.0.0.1", port)):
        assert background._api_port(layout, EnvironmentSettings()) is None


def test_a_port_that_was_asked_for_is_not_exchanged(layout: EnvironmentPaths) -> None:
    save_state(layout.state, EnvironmentState(free_port(), "a:b"))
    assert background._api_port(layout, EnvironmentSettings(api_port=6443)) == 6443


def test_steps_are_told_until_all_is_ready(
    layout: EnvironmentPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = """if True:
        print('{"step": "one"}'); print('{"step": "two"}'); print('{"ready": "url"}', flush=True)
    """
    told: list[str] = []
    started = resident(monkeypatch, script)
    background.start_background(layout, EnvironmentSettings(), told.append)
    assert told == ["one", "two"]
    started[0].wait()


def test_the_error_of_the_background_process_is_ours(
    layout: EnvironmentPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    resident(monkeypatch, """print('{"error": "port taken"}')""")
    with pytest.raises(StartFailedError, match="port taken"):
        background.start_background(layout, EnvironmentSettings(), print)


def test_a_folder_that_another_process_was_quicker_to_take_is_told_apart(
    layout: EnvironmentPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    resident(monkeypatch, """print('{"in_use_by": "77"}')""")
    with pytest.raises(EnvironmentInUseError) as caught:
        background.start_background(layout, EnvironmentSettings(), print)
    assert caught.value.pid == 77


def test_a_folder_that_cannot_be_made_is_named() -> None:
    with pytest.raises(FolderUnusableError, match="cannot use the folder /proc/nowhere"):
        EnvironmentPaths(Path("/proc/nowhere")).make()


def test_a_background_process_that_dies_in_silence_has_its_log_shown(
    layout: EnvironmentPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout.supervisor_log.write_text("Traceback: no")
    started = resident(monkeypatch, "")
    with pytest.raises(StartFailedError, match="Traceback: no"):
        background.start_background(layout, EnvironmentSettings(), print)
    assert started[0].returncode is not None


def test_whoever_interrupts_the_start_takes_it_back(
    layout: EnvironmentPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = """if True:
        import time
        print('{"step": "one"}', flush=True)
        time.sleep(60)
    """
    started = resident(monkeypatch, script)

    def interrupt(_step: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        background.start_background(layout, EnvironmentSettings(), interrupt)
    assert started[0].returncode is not None


def test_stopping_what_does_not_run_is_no_error(layout: EnvironmentPaths) -> None:
    assert not background.stop_background(layout)


def test_wiping_forgets_the_data_and_keeps_what_jobs_have_written(layout: EnvironmentPaths) -> None:
    layout.control_plane.mkdir()
    layout.kubeconfig.symlink_to(layout.control_plane / "kubeconfig")
    report = layout.folder / "out" / "report.html"
    report.parent.mkdir()
    report.touch()
    background.wipe(layout)
    background.wipe(layout)
    assert report.exists()
    assert not any(path.exists() or path.is_symlink() for path in layout.wiped)


def test_each_part_runs_under_a_service_account_of_its_kind() -> None:
    settings = EnvironmentSettings(app="hello:app", workers=3, slots=5)
    assert components.operator_spec(settings).service_account == "asyncjob-operator"
    workers = components.worker_specs(settings)
    assert [worker.name for worker in workers] == ["worker-1", "worker-2", "worker-3"]
    assert {worker.service_account for worker in workers} == {"asyncjob-worker"}
    assert "hello:app" in workers[0].argv
    assert "--concurrency=5" in workers[0].argv


def test_a_checkout_without_manifests_is_named(tmp_path: Path) -> None:
    with pytest.raises(ManifestsMissingError, match="crds"):
        install(ControlPlane(), [tmp_path / "crds"])
