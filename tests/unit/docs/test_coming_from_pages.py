"""Our side of the example runs, and does what theirs does.

The pages are docs/explanation/coming-from/dbos.md and docs/explanation/coming-from/temporal.md.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from asyncjob.testing import FakeCluster

PAGES = Path(__file__).parents[3] / "docs/explanation/coming-from"
ORDER = {"number": "1001", "card": "visa", "total": 4200}


@pytest.fixture(params=["dbos", "temporal"])
def page(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """Return what our code on the page makes; theirs needs what is not installed here."""
    path = PAGES / f"{request.param}.md"
    module = ModuleType(f"page_for_{request.param}")
    sys.modules[module.__name__] = module
    blocks = re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), re.DOTALL)
    [ours] = [block for block in blocks if "from asyncjob" in block]
    exec(compile(ours, str(path), "exec"), module.__dict__)
    yield module
    del sys.modules[module.__name__]


@pytest.mark.parametrize("approval", [{"ok": True}, {"ok": False}, None])
async def test_an_order_ships_if_it_is_approved_and_is_refunded_if_not(
    page: ModuleType, approval: dict[str, bool] | None
) -> None:
    async with FakeCluster(page.app) as cluster:
        job = await cluster.submit("order.fulfil", ORDER)
        await cluster.run_until(lambda: bool(job.status.waiting))
        if approval is not None:
            await job.signal("approval", approval, sent_by="ada")
        await cluster.run_until_idle()
    if approval == {"ok": True}:
        assert job.result == "order 1001 is on its way"
        assert [*job.steps] == ["charge", "ship"]
        assert job.status.parks == 2
    else:
        assert job.result == "refunded"
        assert [*job.steps] == ["charge", "refund"]


def test_both_pages_have_the_same_example_of_ours() -> None:
    ours = [
        block
        for name in ("dbos", "temporal")
        for block in re.findall(
            r"```python\n(.*?)```", (PAGES / f"{name}.md").read_text("utf-8"), re.DOTALL
        )
        if "from asyncjob" in block
    ]
    assert len(ours) == 2
    assert ours[0] == ours[1]
