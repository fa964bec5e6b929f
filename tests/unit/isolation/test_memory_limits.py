"""Memory limits, and how long a process is used."""

from pathlib import Path
from typing import Any

import pytest

from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob_worker.isolation import pool
from support.isolation import Shop, is_left, job, until

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_over_its_memory_limit_a_handler_fails_and_the_next_does_not(shop: Shop) -> None:
    assert await shop.result("swell", 100) == 100
    before = await shop.result("pid")
    move = await shop.run(job("swell", 400))
    assert move
    assert (move.target, move.reason) == (Phase.RETRYING, Reason.HANDLER_FAILED)
    error: Any = move.fields["error"]
    assert (error["type"], error["category"]) == ("MemoryError", "Internal")
    assert error["message"] == "out of memory: memory_mib=300"
    assert await shop.result("pid") != before
    assert await shop.result("swell", 100) == 100


async def test_the_limit_holds_for_its_own_handler_only(shop: Shop) -> None:
    assert await shop.result("swell", 10) == 10
    assert len(await shop.result("big", 1000)) == 1000
    before = await shop.result("pid")
    assert await shop.result("leak", 400) == before


async def test_a_limit_below_what_the_app_takes_says_so(shop: Shop) -> None:
    move = await shop.run(job("cramped"))
    assert move
    assert "memory_mib=1 is too little: the app alone takes" in str(move.fields["message"])


async def test_a_process_that_earlier_jobs_have_swollen_serves_no_limited_handler() -> None:
    shop = Shop()
    first = await shop.result("leak", 20)
    assert await shop.result("pid") == first
    assert await shop.result("leak", 200) == first
    second = await shop.result("pid")
    assert second != first
    assert await shop.result("leak", 1) == second
    await shop.close()


async def test_with_every_slot_taken_an_unfit_process_makes_room() -> None:
    shop = Shop(most=1)
    first = await shop.result("leak", 200)
    assert await shop.result("pid") != first
    await until(lambda: not is_left(first), "the swollen process is ended")
    await shop.close()


async def test_a_process_is_replaced_after_as_many_jobs_as_it_may_run() -> None:
    shop = Shop(jobs_each=2)
    pids = [await shop.result("pid") for _ in range(3)]
    assert pids[0] == pids[1] != pids[2]
    await until(lambda: not is_left(pids[0]), "the used process is ended")
    await shop.close()


async def test_a_process_that_is_idle_for_long_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.05)
    shop = Shop()
    pid = await shop.result("pid")
    await until(lambda: not is_left(pid), "the idle process is ended")
    await shop.close()
