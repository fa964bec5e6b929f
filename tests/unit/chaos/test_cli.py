"""The command: which cells it runs, what it prints and stores, and when it fails."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from asyncjob_chaos import cli
from asyncjob_chaos.judging.signs import OF_MATRIX
from asyncjob_chaos.judging.verdict import Verdict
from asyncjob_chaos.matrix import CELLS, Cell


class Runs:
    """Cells that are judged as they are told to be, without a process."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.bursts: set[int] = set()
        self.lost: set[str] = set()
        self.signs = Counter(OF_MATRIX)

    def __call__(self, cell: Cell, _planes: Any, _folder: Path, burst: int) -> Verdict:
        self.names.append(cell.name)
        self.bursts.add(burst)
        lost = ["job-1 is Running and does not end"] if cell.name in self.lost else []
        return Verdict(cell.name, jobs=100, lost=lost, signs=self.signs)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    made = Runs()
    monkeypatch.setattr(cli, "run_cell", made)
    return made


def chaos(out: Path, *options: str) -> Result:
    return CliRunner().invoke(cli.main, [f"--out={out}", *options])


def test_all_cells_are_run_with_a_large_burst(runs: Runs, tmp_path: Path) -> None:
    done = chaos(tmp_path / "chaos.json")
    assert done.exit_code == 0, done.output
    assert runs.names == [cell.name for cell in CELLS]
    assert runs.bursts == {50_000}
    assert len(json.loads((tmp_path / "chaos.json").read_text())["cells"]) == len(CELLS)


def test_a_lost_job_fails_the_run_and_is_named(runs: Runs, tmp_path: Path) -> None:
    runs.lost = {"poison/long"}
    done = chaos(tmp_path / "chaos.json", "--cells=poison")
    assert done.exit_code == 1
    assert "poison/long: job-1 is Running and does not end" in done.stderr
    assert "| `poison/plain` | 100 | 0 |" in done.stdout


def test_a_whole_run_in_which_no_lost_answer_was_adopted_fails(runs: Runs, tmp_path: Path) -> None:
    runs.signs = Counter(OF_MATRIX[1:])
    done = chaos(tmp_path / "chaos.json")
    assert done.exit_code == 1
    assert f"in no cell: {OF_MATRIX[0]}" in done.stderr


def test_the_short_form_prints_its_seed_and_takes_the_same_cells_with_it(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "CELL_SECONDS", 1e9)  # no second cell would end in time
    done = chaos(tmp_path / "chaos.json", "--small")
    seed = done.stderr.splitlines()[0].removeprefix("seed: ")
    again = chaos(tmp_path / "chaos.json", "--small", f"--seed={seed}")
    assert (done.exit_code, again.exit_code) == (0, 0)
    assert len(runs.names) == 2
    assert runs.names[0] == runs.names[1]
    assert runs.bursts == {2_000}


def test_a_run_of_some_cells_completes_the_table_of_an_earlier_one(
    runs: Runs, tmp_path: Path
) -> None:
    out = tmp_path / "chaos.json"
    runs.lost = {"poison/long"}
    assert chaos(out, "--cells=poison").exit_code == 1
    runs.lost = set()
    done = chaos(out, "--cells=poison/long,stop-long/plain", "--merge")
    assert done.exit_code == 0
    cells = [cell["cell"] for cell in json.loads(out.read_text())["cells"]]
    assert cells == ["stop-long/plain", "poison/plain", "poison/long", "poison/waits"]


def test_a_cell_that_there_is_not_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    done = chaos(tmp_path / "chaos.json", "--cells=stop-long/none")
    assert done.exit_code == 2
    assert "stop-long/plain" in done.stderr
