"""Two thousand items on real processes, each kind of which is killed: each item counts once."""

from pathlib import Path

import pytest

from asyncjob_chaos.array_kills import ArrayPlan, lines_of, run_array

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


def test_each_item_counts_once_whatever_is_killed(tmp_path: Path) -> None:
    plan = ArrayPlan(items=2000, rounds=1)
    found = run_array(plan, tmp_path)
    assert found.wrong == [], lines_of(found, plan)
    assert found.items.done == 2000
    assert (found.report.arrays, found.report.counts.total(), found.report.complete) == (1, 0, True)
    killed = [line.rpartition(": ")[2] for line in found.kills]
    assert len(killed) == 7
    assert {name.rstrip("-12") for name in killed} == {
        "worker",
        "operator",
        "gateway",
        "API server",
    }
