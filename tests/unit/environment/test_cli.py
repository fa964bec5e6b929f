"""The command line: what it passes on, and how it ends."""

import runpy
import sys
from collections.abc import Mapping
from importlib.abc import MetaPathFinder
from pathlib import Path

import pytest
from click.testing import CliRunner

from asyncjob_dev import cli
from asyncjob_dev.environment import EnvironmentPaths, EnvironmentSettings
from asyncjob_dev.errors import OtherSettingsError


class InterruptedImport(MetaPathFinder):
    """Ctrl-C while the command line is imported."""

    def find_spec(self, name: str, *_rest: object) -> None:
        if name == "asyncjob_dev.cli":
            raise KeyboardInterrupt


def test_an_interrupt_during_the_imports_ends_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "asyncjob_dev.cli")
    monkeypatch.setattr(sys, "meta_path", [InterruptedImport(), *sys.meta_path])
    with pytest.raises(SystemExit) as caught:
        runpy.run_module("asyncjob_dev", run_name="__main__")
    assert caught.value.code == 130
    assert capsys.readouterr() == ("", "")


def test_a_folder_that_cannot_be_used_is_a_sentence(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.symlink_to(lock)
    for command in ("up", "status", "down"):
        done = CliRunner().invoke(cli.main, [command, "--folder", str(tmp_path)])
        assert done.exit_code == 1
        assert f"Error: cannot use the folder {tmp_path}: " in done.output


def test_only_settings_that_were_given_are_demanded_of_what_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[EnvironmentSettings, Mapping[str, object]]] = []

    def ensure(
        _layout: EnvironmentPaths,
        settings: EnvironmentSettings,
        asked: Mapping[str, object],
        _tell: object,
    ) -> int:
        seen.append((settings, asked))
        return 77

    monkeypatch.setattr(cli, "ensure_running", ensure)
    arguments = ["up", "--folder", str(tmp_path), "--port", "6443", "--slots", "4"]
    done = CliRunner().invoke(cli.main, arguments)
    assert done.exit_code == 0
    assert "already up (process 77)" in done.output
    assert seen == [(EnvironmentSettings(api_port=6443), {"api_port": 6443, "slots": 4})]


def test_settings_that_were_not_applied_are_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ensure(*_arguments: object) -> int:
        raise OtherSettingsError(77, ["WORKERS is 2, not 3"])

    monkeypatch.setattr(cli, "ensure_running", ensure)
    done = CliRunner().invoke(cli.main, ["up", "--folder", str(tmp_path), "--workers", "3"])
    assert done.exit_code == 1
    assert "not applied: WORKERS is 2, not 3" in done.output
