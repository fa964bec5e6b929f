"""Children die with their parent, and a group with its leader.

A FIFO as log file tells without waiting: it ends when the last process that holds it is gone.
"""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from asyncjob_dev import launch
from asyncjob_dev.process import Subprocess, bound_command, spawn

PARENT = """
import os, sys
from pathlib import Path
from asyncjob_dev.process import spawn
command = ["sh", "-c", "echo up; exec sleep 1000"]
child = spawn(command, log_file=Path(sys.argv[1]), env=None, cwd=None)
sys.stdin.readline()
"""
WATCHING_PARENT = """
import os, subprocess, sys
from asyncjob_dev import launch
command = ["sh", "-c", "echo up; exec sleep 1000"]
launcher = [sys.executable, launch.__file__, "--watch", str(os.getpid()), "--", *command]
with open(sys.argv[1], "ab") as log:
    subprocess.Popen(launcher, stdout=log, start_new_session=True)
sys.stdin.readline()
"""


def started(log_file: Path, *command: str) -> Subprocess:
    return spawn(command, log_file=log_file, env=None, cwd=None)


def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("script", [PARENT, WATCHING_PARENT])
def test_a_child_dies_when_its_parent_is_killed(tmp_path: Path, script: str) -> None:
    pipe = fifo(tmp_path)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    command = [sys.executable, "-c", script, str(pipe)]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE) as parent,
        os.fdopen(reader, "rb") as held_by_the_child,
        pipe.open("wb") as until_it_is_up,
    ):
        assert held_by_the_child.readline() == b"up\n"
        until_it_is_up.close()
        parent.kill()
        assert held_by_the_child.read() == b""


def test_a_child_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    pipe = fifo(tmp_path)
    children: list[Subprocess] = []

    def start_one() -> None:
        children.append(started(pipe, "sh", "-c", "echo up; exec sleep 1000"))
        # Not before the child can have told the kernel to watch its parent.
        with pipe.open("rb") as output:
            output.readline()

    # Keeps the FIFO open at both ends, so that nobody waits for anybody to open it.
    with os.fdopen(os.open(pipe, os.O_RDWR), "r+b", buffering=0):
        starter = threading.Thread(target=start_one)
        starter.start()
        starter.join()
    (child,) = children
    assert child.wait(timeout=0.3) is None
    child.signal_group(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL


def test_what_a_process_leaves_in_its_group_is_killed_with_it(tmp_path: Path) -> None:
    pipe = fifo(tmp_path)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    child = started(pipe, "sh", "-c", "sleep 1000 & exit 3")
    assert child.wait() == 3
    with os.fdopen(reader, "rb") as held_by_the_sleep:
        assert held_by_the_sleep.read() == b""


def test_signals_to_a_process_that_is_gone_are_ignored(tmp_path: Path) -> None:
    child = started(tmp_path / "log", "true")
    assert child.wait() == 0
    child.signal(signal.SIGTERM)
    child.signal_group(signal.SIGKILL)
    assert child.poll() == 0


def test_the_command_takes_the_place_of_the_launcher(tmp_path: Path) -> None:
    child = started(tmp_path / "log", "sh", "-c", "echo $$")
    child.wait()
    assert (tmp_path / "log").read_text() == f"{child.pid}\n"


def test_a_missing_program_is_named_and_ends_with_127(tmp_path: Path) -> None:
    child = started(tmp_path / "log", "no-such-program-here")
    assert child.wait() == 127
    assert "no-such-program-here: no such program" in (tmp_path / "log").read_text()


def test_a_file_that_is_no_program_ends_with_126(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("data")
    child = started(tmp_path / "log", str(tmp_path / "data"))
    assert child.wait() == 126
    assert "Permission denied" in (tmp_path / "log").read_text()


def test_a_launcher_whose_parent_is_already_gone_starts_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    command = bound_command(["touch", str(marker)])
    command[command.index("--") - 1] = "1"
    assert subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 125
    assert not marker.exists()


@pytest.mark.parametrize("arguments", [[], ["--"], ["12"], ["x", "--", "true"], ["12", "--"]])
def test_wrong_arguments_of_the_launcher_get_its_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert launch.main(arguments) == 2
    assert "usage: launch" in capsys.readouterr().err


def test_the_watching_launcher_passes_sigterm_on_and_ends_alike(tmp_path: Path) -> None:
    script = "trap 'exit 7' TERM; echo ready; while read line; do :; done"
    command = [sys.executable, launch.__file__, "--watch", str(os.getpid()), "--"]
    with subprocess.Popen(
        [*command, "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as launcher:
        assert launcher.stdout is not None
        assert launcher.stdout.readline() == b"ready\n"
        launcher.terminate()
        assert launcher.wait() == 7


def test_the_watching_launcher_dies_of_the_same_signal(tmp_path: Path) -> None:
    command = [sys.executable, launch.__file__, "--watch", str(os.getpid()), "--"]
    done = subprocess.run([*command, "sh", "-c", "kill -KILL $$"], check=False)
    assert done.returncode == -signal.SIGKILL
