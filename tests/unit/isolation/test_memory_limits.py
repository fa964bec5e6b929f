"""Memory limits, and how long a process is used."""

from pathlib import Path
from typing import Any

import pytest

from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob_worker.isolation import pool
from support.parts.isolation import IsolatedAttempts, is_left, job, until

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_over_its_memory_limit_a_handler_fails_and_the_next_does_not(
    attempts: IsolatedAttempts,
) -> None:
    assert await attempts.result("swell", 100) == 100
    before = await attempts.result("pid")
    move = await attempts.run(job("swell", 400))
    assert move
    assert (move.target, move.reason) == (Phase.RETRYING, Reason.HANDLER_FAILED)
    error: Any = move.fields["error"]
    assert (error["type"], error["category"]) == ("MemoryError", "Internal")
    assert error["message"] == "out of memory: memory_mib=300"
    assert await attempts.result("pid") != before
    assert await attempts.result("swell", 100) == 100


async def test_the_limit_holds_for_its_own_handler_only(attempts: IsolatedAttempts) -> None:
    assert await attempts.result("swell", 10) == 10
    assert len(await attempts.result("big", 1000)) == 1000
    before = await attempts.result("pid")
    assert await attempts.result("leak", 400) == before


async def test_a_limit_below_what_the_app_takes_says_so(attempts: IsolatedAttempts) -> None:
    move = await attempts.run(job("cramped"))
    assert move
    assert "memory_mib=1 is too little: the app alone takes" in str(move.fields["message"])


async def test_a_process_that_earlier_jobs_have_swollen_serves_no_limited_handler() -> None:
    attempts = IsolatedAttempts()
    first = await attempts.result("leak", 20)
    assert await attempts.result("pid") == first
    assert await attempts.result("leak", 200) == first
    second = await attempts.result("pid")
    assert second != first
    assert await attempts.result("leak", 1) == second
    await attempts.close()


async def test_with_every_slot_taken_an_unfit_process_makes_room() -> None:
    attempts = IsolatedAttempts(most=1)
    first = await attempts.result("leak", 200)
    assert await attempts.result("pid") != first
    await until(lambda: not is_left(first), "the swollen process is ended")
    await attempts.close()


async def test_a_process_is_replaced_after_as_many_jobs_as_it_may_run() -> None:
    attempts = IsolatedAttempts(jobs_each=2)
    pids = [await attempts.result("pid") for _ in range(3)]
    assert pids[0] == pids[1] != pids[2]
    await until(lambda: not is_left(pids[0]), "the used process is ended")
    await attempts.close()


async def test_a_process_that_is_idle_for_long_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.05)
    attempts = IsolatedAttempts()
    pid = await attempts.result("pid")
    await until(lambda: not is_left(pid), "the idle process is ended")
    await attempts.close()
