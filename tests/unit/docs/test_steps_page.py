"""The page on steps, docs/how-to/take-steps.md: its code runs, and its tests hold."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from asyncjob.testing import FakeCluster, run_handler

PAGE = Path(__file__).parents[3] / "docs/how-to/take-steps.md"


@pytest.fixture
def page() -> Iterator[ModuleType]:
    module = ModuleType("page_on_steps")
    sys.modules[module.__name__] = module
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), module.__dict__)
    yield module
    del sys.modules[module.__name__]


async def test_the_tests_on_the_page_hold(page: ModuleType) -> None:
    tests = [test for name, test in vars(page).items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        await test()


async def test_the_sync_handler_takes_its_step(page: ModuleType) -> None:
    order = {"number": "7", "card": "x", "total": 1}
    run = await run_handler(page.app, "order.pack", order)
    assert (run.result, list(run.steps)) == ("parcel 7", ["label"])


async def test_a_redrive_goes_on_from_the_refund_and_a_rerun_charges_again(
    page: ModuleType,
) -> None:
    async with FakeCluster(page.app) as cluster:
        order: Any = {"number": "8", "card": "x", "total": 1000}
        job = await cluster.submit("order.fulfil", order)
        await cluster.run_until_idle()
        kept = dict(job.steps)
        await job.redrive()
        again = await job.rerun()
        await cluster.run_until_idle()
    assert job.steps == kept
    assert list(again.steps) == ["charge", "refund"]
