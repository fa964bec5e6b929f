"""The rows of a file, each checked by itself as an item of an array that a handler submits."""

from pathlib import Path

import pytest
from examples.handlers.order_check import app

from asyncjob.testing import FakeCluster, Phase, run_handler
from unit.examples.notes import ROOT

ROWS = """order,date,region,product,quantity,amount
A-1,2025-01-01,west,Mug,3,29.40
A-2,2025-01-02,north,Cable,0,67.50
A-3,2025-01-03,south,Kettle,9,31410.00
A-4,2025-01-04,south,Mug,1,9.80
"""


async def test_each_row_is_checked_and_those_to_look_at_are_named(tmp_path: Path) -> None:
    file = tmp_path / "orders.csv"
    file.write_text(ROWS)
    run = await run_handler(app, "order.check-file", {"source": str(file)}, raise_errors=True)
    assert isinstance(run.result, dict)
    assert (run.result["fine"], run.result["to_look_at"]) == (2, "1-2")


async def test_the_job_has_no_slot_while_its_rows_are_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    async with FakeCluster(app) as cluster:
        job = await cluster.submit("order.check-file", {"source": "examples/data/orders.csv"})
        await cluster.run_until_idle()
        [array] = cluster.arrays
        assert job.phase is Phase.SUCCEEDED
        assert job.result == {"array": array.name, "fine": 48, "to_look_at": ""}
