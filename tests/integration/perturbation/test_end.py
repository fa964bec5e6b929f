"""A run that is ended leaves nothing: no part, no process that forks parts, no API server."""

import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL, SIGTERM, Signals

import pytest

from support.processes.commands import HANGS, Commands

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

_PARTS = 2
"""Operator and worker, forked by a process of the same command line."""


@pytest.fixture
def perturb(tmp_path: Path) -> Iterator[Commands]:
    made = Commands(secrets.token_hex(8), tmp_path, "asyncjob_perturbation")
    yield made
    made.kill_all()


@pytest.mark.parametrize("number", [pytest.param(SIGTERM, marks=pytest.mark.soak), SIGKILL])
def test_nothing_runs_on_when_the_command_is_ended(perturb: Commands, number: Signals) -> None:
    with perturb.start("--scenario=plain", "--part=worker", "--parallel=1") as command:
        until_parts_run(perturb)
        command.send_signal(number)
        command.communicate(timeout=HANGS)
    perturb.await_none_running(within=HANGS)
    if number is SIGTERM:
        assert not list(perturb.temporary.glob("asyncjob-*"))


def until_parts_run(perturb: Commands) -> None:
    deadline = time.monotonic() + HANGS
    while sum("forkserver" in command for command in perturb.running()) <= _PARTS:
        assert time.monotonic() < deadline, perturb.running()
        time.sleep(0.05)
