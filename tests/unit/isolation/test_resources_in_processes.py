"""Resources in the processes of handlers: their own, only those needed, closed in order."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from asyncjob.app.context import Stop
from asyncjob.lifecycle.phases import Phase, Reason
from support.apps.isolated_family import app
from support.parts.isolation import IsolatedAttempts, begin_with, is_left, job, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

TARGET = "support.apps.isolated_family:app"


@dataclass
class ResourcesHarness:
    """A attempts of the app with resources, and what these have noted."""

    attempts: IsolatedAttempts
    folder: Path

    def trace(self) -> list[str]:
        file = self.folder / "trace"
        return file.read_text().splitlines() if file.exists() else []


@pytest_asyncio.fixture(loop_scope="module")
async def harness(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ResourcesHarness]:
    monkeypatch.setenv("FAMILY_FOLDER", str(tmp_path))
    attempts = IsolatedAttempts(app=app, begin=begin_with(TARGET))
    yield ResourcesHarness(attempts, tmp_path)
    await attempts.close()


async def test_they_are_opened_once_when_needed_and_closed_in_reverse(
    harness: ResourcesHarness, capfd: pytest.CaptureFixture[str]
) -> None:
    attempts = harness.attempts
    pid = (await attempts.result("plain"))["pid"]
    assert harness.trace() == []
    assert await attempts.result("uses-sync") == [pid, pid]
    assert harness.trace() == ["open pool"]
    assert await attempts.result("uses", 3) == [3, pid, pid, None]
    assert await attempts.result("uses") == [0, pid, pid, None]
    assert harness.trace() == ["open pool", "open files"]
    await attempts.close()
    assert harness.trace() == ["open pool", "open files", "close files", "close pool"]
    (line,) = (line for line in capfd.readouterr().err.splitlines() if "nobody's job" in line)
    assert "job=" not in line


async def test_one_that_cannot_be_opened_fails_the_attempt_and_the_next_has_a_new_process(
    harness: ResourcesHarness,
) -> None:
    pid = (await harness.attempts.result("plain"))["pid"]
    (harness.folder / "dry").touch()
    move = await harness.attempts.run(job("uses"))
    assert move
    assert (move.target, move.reason) == (Phase.RETRYING, Reason.HANDLER_FAILED)
    assert "crashes" not in move.fields
    error: Any = move.fields["error"]
    assert error["type"] == "ResourceError"
    why = "cannot be opened: ConnectionRefusedError: the pool is dry"
    assert error["message"] == f"resource (support.apps.isolated_family.pool) {why}"
    await until(lambda: not is_left(pid), "the process is replaced")
    (harness.folder / "dry").unlink()
    assert (await harness.attempts.result("uses"))[1] != pid


async def test_a_stop_interrupts_the_opening(harness: ResourcesHarness) -> None:
    (harness.folder / "slow").touch()
    of = job("uses")
    running = asyncio.ensure_future(harness.attempts.run(of))
    await until(harness.trace, "the pool is being opened")
    (child,) = harness.attempts.pool._processes
    of.stop(Stop.DRAINING)
    move = await running
    assert move
    assert move.reason is Reason.RELEASED
    assert await child.exited == 0


async def test_what_they_take_is_not_held_against_the_next_job(harness: ResourcesHarness) -> None:
    pid = await harness.attempts.result("heavy")
    assert await harness.attempts.result("heavy") == pid
