"""The first process of a node: its lock, the signals it passes on, the orphans it buries."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from asyncjob_dev.node import host, init

LOUD = "import signal, sys; print('started', flush=True); signal.pause()"
COUNTS = """
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print("started", flush=True)
while True:
    signal.pause()
"""


def command(lock: Path, *program: str) -> list[str]:
    return [sys.executable, "-I", "-S", init.__file__, str(lock), "--", sys.executable, *program]


def test_it_ends_with_the_code_of_what_it_runs(tmp_path: Path) -> None:
    ended = subprocess.run(command(tmp_path / "lock", "-c", "raise SystemExit(3)"), check=False)
    assert ended.returncode == 3


def test_it_holds_the_lock_as_long_as_it_lives_and_passes_signals_on(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    assert not host.is_locked(lock)
    with subprocess.Popen(command(lock, "-c", COUNTS), stdout=subprocess.PIPE) as first:
        assert first.stdout
        assert first.stdout.readline() == b"started\n"
        assert host.is_locked(lock)
        first.send_signal(signal.SIGTERM)
        assert first.wait(10) == 7
    assert not host.is_locked(lock)


def test_what_it_runs_does_not_inherit_the_lock(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with subprocess.Popen(command(lock, "-c", LOUD), stdout=subprocess.PIPE) as first:
        assert first.stdout
        assert first.stdout.readline() == b"started\n"
        child = int(Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text())
        first.kill()
        first.wait()
        assert not host.is_locked(lock)
        subprocess.run(["kill", str(child)], check=True)


def test_without_a_command_it_says_how_to_call_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert init.main(["lock"]) == 2
    assert "usage: init" in capsys.readouterr().err
