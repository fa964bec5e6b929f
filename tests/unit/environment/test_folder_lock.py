"""One process at a time holds an environment's folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from asyncjob_dev.environment.state import acquire_lock, lock_holder, wait_unlocked
from asyncjob_dev.errors import EnvironmentInUseError

HOLD = """
import sys, time
from pathlib import Path
from asyncjob_dev.environment.state import acquire_lock
held = acquire_lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def test_nobody_holds_a_folder_that_was_never_used(tmp_path: Path) -> None:
    assert lock_holder(tmp_path / "lock") is None


def test_the_holder_is_known_by_its_process_id_until_it_lets_go(tmp_path: Path) -> None:
    lock = tmp_path / "new" / "lock"
    with acquire_lock(lock):
        assert lock_holder(lock) == os.getpid()
    assert lock_holder(lock) is None


def test_a_second_holder_is_refused_and_told_of_the_first(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with acquire_lock(lock), pytest.raises(EnvironmentInUseError, match=str(os.getpid())):
        acquire_lock(lock)


def test_a_folder_can_be_held_again(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    for _ in range(2):
        with acquire_lock(lock):
            assert lock_holder(lock) == os.getpid()


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(lock)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert lock_holder(lock) == other.pid
        assert not wait_unlocked(lock, within=0.0)
        other.kill()
        assert wait_unlocked(lock, within=10.0)
    with acquire_lock(lock):
        assert lock_holder(lock) == os.getpid()
