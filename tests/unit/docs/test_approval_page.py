"""The page on approvals, docs/how-to/wait-for-an-approval.md: its code runs, and its test holds."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from asyncjob.testing import FakeCluster

PAGE = Path(__file__).parents[3] / "docs/how-to/wait-for-an-approval.md"


@pytest.fixture
def page() -> Iterator[ModuleType]:
    module = ModuleType("page_on_approvals")
    sys.modules[module.__name__] = module
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), module.__dict__)
    yield module
    del sys.modules[module.__name__]


async def test_the_test_on_the_page_holds(page: ModuleType) -> None:
    [test] = [test for name, test in vars(page).items() if name.startswith("test_")]
    await test()


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"ok": False, "note": "on Monday"}, "ada has refused shop -> 7: on Monday"),
        (None, "nobody has approved shop -> 7"),
    ],
)
async def test_a_refusal_and_silence_end_as_the_page_says(
    page: ModuleType, payload: object, said: str
) -> None:
    async with FakeCluster(page.app) as cluster:
        job = await cluster.submit("release.deploy", "7")
        await cluster.run_until(lambda: bool(job.status.waiting))
        if payload is not None:
            await job.signal("approval", payload, sent_by="ada")
        await cluster.run_until_idle()
    assert said in (job.message or "")


@pytest.mark.parametrize(
    ("after", "steps"), [(3600.0, ["install"]), (90_000.0, ["remind", "install"])]
)
async def test_the_reminder_is_sent_unless_the_approval_comes_first(
    page: ModuleType, after: float, steps: list[str]
) -> None:
    async with FakeCluster(page.app) as cluster:
        job = await cluster.submit("release.remind", "7")
        await cluster.advance(after)
        await job.signal("approval", {"ok": True}, sent_by="ada")
        await cluster.run_until_idle()
    assert (job.result, list(job.steps)) == ("shop has 7", steps)
    assert job.status.parks == len(steps)
