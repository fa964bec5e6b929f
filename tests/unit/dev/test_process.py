"""A supervised process: started until ready, stopped in order, honest when it dies."""

import os
import signal
from pathlib import Path

import pytest

from asyncjob_dev.errors import NotReadyError, ProcessDiedError, ProcessPortTakenError
from asyncjob_dev.process import ManagedProcess, usual_cause


def shell(tmp_path: Path, script: str, **options: object) -> ManagedProcess:
    return ManagedProcess("subject", ["sh", "-c", script], log_file=tmp_path / "log", **options)  # type: ignore[arg-type]


def test_it_is_ready_when_its_probe_says_so(tmp_path: Path) -> None:
    marker = tmp_path / "ready"
    with shell(tmp_path, f"touch {marker}; exec sleep 1000", ready=marker.exists) as process:
        assert process.running
        assert marker.exists()
    assert not process.running


def test_one_that_dies_first_shows_its_log(tmp_path: Path) -> None:
    process = shell(tmp_path, "echo out of luck; exit 5", ready=lambda: False)
    with pytest.raises(ProcessDiedError, match=r"(?s)subject ended with 5.*out of luck"):
        process.start()


def test_a_death_reads_well_with_and_without_a_known_cause(tmp_path: Path) -> None:
    for script, said in (("exit 5", ""), ("echo unknown flag; exit 5", " It does not know")):
        process = shell(tmp_path, script, ready=lambda: False)
        with pytest.raises(ProcessDiedError) as caught:
            process.start()
        first, second, *_ = str(caught.value).splitlines()
        assert first.startswith(f"subject ended with 5 before it was ready.{said}")
        assert first == first.rstrip()
        assert second == "The end of the log of subject:"


def test_a_taken_port_is_told_apart(tmp_path: Path) -> None:
    process = shell(
        tmp_path, "echo listen tcp: bind: address already in use; exit 1", ready=lambda: False
    )
    with pytest.raises(ProcessPortTakenError, match="Its port is taken"):
        process.start()


def test_the_log_of_an_earlier_start_is_not_blamed(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("bind: address already in use\n")
    process = shell(tmp_path, "echo something else; exit 1", ready=lambda: False)
    with pytest.raises(ProcessDiedError) as caught:
        process.start()
    assert not isinstance(caught.value, ProcessPortTakenError)
    assert "address already in use" not in str(caught.value)


def test_somebody_elses_answer_does_not_make_a_dead_process_ready(tmp_path: Path) -> None:
    process = shell(tmp_path, "exit 1", ready=lambda: True)
    process.spawn()
    process.wait()
    with pytest.raises(ProcessDiedError):
        process.wait_ready()


def test_one_that_is_never_ready_is_killed(tmp_path: Path) -> None:
    process = shell(
        tmp_path, "echo still busy; exec sleep 1000", ready=lambda: False, ready_within=0.3
    )
    with pytest.raises(NotReadyError, match=r"(?s)not ready within 0.3 s.*still busy"):
        process.start()
    assert not process.running
    assert process.returncode == -signal.SIGKILL


def test_stop_lets_it_end_by_itself(tmp_path: Path) -> None:
    marker = tmp_path / "ready"
    script = f"trap 'exit 0' TERM; touch {marker}; while :; do sleep 0.01; done"
    process = shell(tmp_path, script, ready=marker.exists)
    process.start()
    assert process.stop() == 0


def test_stop_kills_what_does_not_listen(tmp_path: Path) -> None:
    marker = tmp_path / "ready"
    process = shell(
        tmp_path, f"trap '' TERM; touch {marker}; while :; do sleep 0.01; done", ready=marker.exists
    )
    process.start()
    assert process.stop(grace=0.1) == -signal.SIGKILL


def test_a_frozen_process_can_be_stopped(tmp_path: Path) -> None:
    process = shell(tmp_path, "exec sleep 1000")
    process.start()
    process.pause()
    assert process.stop() == -signal.SIGTERM


def test_it_can_be_started_again(tmp_path: Path) -> None:
    process = shell(tmp_path, "exec sleep 1000")
    process.start()
    first = process.pid
    process.kill()
    process.start()
    assert process.running
    assert process.pid != first
    process.kill()


def test_starting_twice_starts_once(tmp_path: Path) -> None:
    with shell(tmp_path, "exec sleep 1000") as process:
        first = process.pid
        process.spawn()
        assert process.pid == first


def test_what_was_never_started_can_be_stopped(tmp_path: Path) -> None:
    process = shell(tmp_path, "true")
    assert process.stop() is None
    assert process.pid is None
    assert not process.running


def test_its_environment_is_the_one_given(tmp_path: Path) -> None:
    process = shell(tmp_path, "echo $COLOUR", env={"PATH": os.environ["PATH"], "COLOUR": "green"})
    process.spawn()
    process.wait()
    assert process.log_tail() == "  green"


@pytest.mark.parametrize(
    ("log", "sign"),
    [
        ("listen tcp 127.0.0.1:1: bind: Address already in use", "port is taken"),
        ("write: no space left on device", "disk is full"),
        ("mkdir /x: permission denied", "belongs to somebody else"),
        ("unknown flag: --x", "pinned version"),
        ("all is well", ""),
    ],
)
def test_usual_causes_are_named(log: str, sign: str) -> None:
    assert sign in usual_cause(log)
