"""One process at a time holds an environment's folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from asyncjob_dev.environment.errors import EnvironmentInUseError
from asyncjob_dev.environment.occupancy import holder, occupy, wait_free

HOLD = """
import sys, time
from pathlib import Path
from asyncjob_dev.environment.occupancy import occupy
held = occupy(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def test_nobody_holds_a_folder_that_was_never_used(tmp_path: Path) -> None:
    assert holder(tmp_path / "lock") is None


def test_the_holder_is_known_by_its_process_id_until_it_lets_go(tmp_path: Path) -> None:
    lock = tmp_path / "new" / "lock"
    with occupy(lock):
        assert holder(lock) == os.getpid()
    assert holder(lock) is None


def test_a_second_holder_is_refused_and_told_of_the_first(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with occupy(lock), pytest.raises(EnvironmentInUseError, match=str(os.getpid())):
        occupy(lock)


def test_a_folder_can_be_held_again(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    for _ in range(2):
        with occupy(lock):
            assert holder(lock) == os.getpid()


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(lock)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert holder(lock) == other.pid
        assert not wait_free(lock, within=0.0)
        other.kill()
        assert wait_free(lock, within=10.0)
    with occupy(lock):
        assert holder(lock) == os.getpid()
