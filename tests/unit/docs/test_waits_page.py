"""The page on waits, docs/how-to/wait-without-a-slot.md: its handlers run as it says."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from asyncjob.testing import FakeCluster

PAGE = Path(__file__).parents[3] / "docs/how-to/wait-without-a-slot.md"


def blocks(language: str) -> list[str]:
    text = PAGE.read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.fixture
def page() -> Iterator[ModuleType]:
    module = ModuleType("page_on_waits")
    sys.modules[module.__name__] = module
    for block in blocks("python"):
        exec(compile(block, str(PAGE), "exec"), module.__dict__)
    yield module
    del sys.modules[module.__name__]


async def test_a_reminder_is_sent_after_a_day_and_the_trial_ends_after_thirty(
    page: ModuleType,
) -> None:
    async with FakeCluster(page.app) as cluster:
        job = await cluster.submit("trial.begin", {"email": "a@example.com"})
        await cluster.run_until_idle()
    assert job.result == "the end of the trial to a@example.com"
    assert job.status.parks == 2


async def test_a_night_waits_for_its_shops_and_for_the_hour(page: ModuleType) -> None:
    [manifest] = map(yaml.safe_load, blocks("yaml"))
    template = manifest["spec"]["jobTemplate"]["spec"]
    async with FakeCluster(page.app) as cluster:
        job = await cluster.submit(template["type"], template["payload"])
        await cluster.run_until_idle()
    assert job.result == "report of 10 rows"
    assert job.status.parks == 1  # its shops take no two seconds here: it only sleeps


async def test_a_night_without_the_sales_of_a_shop_is_redriven_once_they_are_there(
    page: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []

    def rows(shop: str) -> int:
        loaded.append(shop)
        if loaded.count("south") == 1 and shop == "south":
            raise page.Fail("the shop does not answer")
        return len(shop)

    monkeypatch.setitem(vars(page), "len", rows)
    async with FakeCluster(page.app) as cluster:
        night = await cluster.submit("night.run", {"shops": ["north", "south"]})
        await cluster.run_until_idle()
        assert (night.phase, "no sales of south" in (night.message or "")) == ("DeadLetter", True)
        [south] = [child for child in night.children if child.phase == "DeadLetter"]
        await south.redrive()
        await cluster.run_until_idle()
        await night.redrive()
        await cluster.run_until_idle()
    assert night.result == "report of 10 rows"
    assert loaded == ["north", "south", "south"]
