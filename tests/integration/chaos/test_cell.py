"""Cells on real processes: one that holds, and one in which the fault did not take place."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from asyncjob_chaos.faults.fault import Fault, at_once
from asyncjob_chaos.judging.signs import Sign
from asyncjob_chaos.load import LOADS
from asyncjob_chaos.matrix import Cell, named
from asyncjob_chaos.orders import ITEMS
from asyncjob_chaos.planes import Planes
from asyncjob_chaos.runner import run_cell

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.timeout(600)]


def test_a_cell_is_run_judged_and_told_of_as_table_and_file(tmp_path: Path) -> None:
    out = tmp_path / "chaos.json"
    done = subprocess.run(
        [sys.executable, "-m", "asyncjob_chaos", "--cells=kill-gateway/plain", f"--out={out}"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "| `kill-gateway/plain` | " in done.stdout
    found: Any = json.loads(out.read_text())
    (cell,) = found["cells"]
    assert (cell["lost"], cell["doubled"], cell["broken"]) == ([], [], {})
    assert cell["jobs"] > 50
    assert cell["signs"] == {**cell["signs"], Sign.GATEWAY_ENDED: 1}


def test_jobs_wait_and_go_on_and_arrays_end_while_their_workers_are_killed(tmp_path: Path) -> None:
    (cell,) = named(["kill-workers/waits"])
    with Planes(tmp_path) as planes:
        verdict = run_cell(cell, planes, tmp_path, burst=0)
    assert verdict.holds, verdict
    assert verdict.jobs > 60
    woken = (Sign.WOKEN_BY_TIME, Sign.WOKEN_BY_SIGNAL, Sign.WOKEN_BY_CHILDREN)
    assert all(verdict.signs[sign] for sign in (Sign.PARKED, *woken)), verdict.signs
    trace = (tmp_path / "kill-workers-waits" / "trace.jsonl").read_text()
    assert trace.count('"event":"item"') >= ITEMS


def test_a_fault_that_does_nothing_fails_its_cell_for_want_of_signs(tmp_path: Path) -> None:
    nothing = Fault(
        name="nothing",
        does="nothing",
        shows=(Sign.STORE_DIED,),
        act=at_once(lambda _target: None),
        hold=0.0,
    )
    with Planes(tmp_path) as planes:
        verdict = run_cell(Cell(nothing, LOADS[0]), planes, tmp_path, burst=0)
    assert (verdict.failed, verdict.lost, verdict.doubled) == ("", [], [])
    assert verdict.missing == [Sign.STORE_DIED]
    assert not verdict.holds
