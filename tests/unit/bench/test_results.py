"""Results as they are stored and shown."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from asyncjob_bench import report, store
from asyncjob_bench.errors import BenchError
from asyncjob_bench.stats import charts, tables
from asyncjob_bench.stats.limits import check_limits, read_limits
from support.objects.measured import results


def test_stored_results_have_their_medians_at_the_top(tmp_path: Path) -> None:
    stored = json.loads(store.write(results(), tmp_path, store.LATEST).read_text())
    assert stored["raw_ceiling_jobs_s"] == 260.0
    assert stored["spread"]["raw_ceiling_jobs_s"] == {
        "low": 250.0,
        "high": 270.0,
        "values": [250.0, 270.0, 260.0],
    }


def test_what_is_stored_is_what_is_read(tmp_path: Path) -> None:
    found = results()
    found.left_out["peer"] = "no PostgreSQL"
    assert store.read(store.write(found, tmp_path, store.LATEST)) == found


def test_each_run_is_kept_beside_the_latest(tmp_path: Path) -> None:
    store.write(results(), tmp_path, store.LATEST)
    assert [it.name for it in (tmp_path / "runs").iterdir()] == ["2026-01-01T000000Z-latest.json"]


@pytest.mark.parametrize("text", ["", "[]", '{"run": {}}', "no json"])
def test_a_file_without_results_says_what_to_do(text: str, tmp_path: Path) -> None:
    file = tmp_path / "latest.json"
    file.write_text(text)
    with pytest.raises(BenchError, match="run `make bench` first"):
        store.read(file)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (3.0, "3"), (0.79123, "0.791"), (2.345, "2.35"), (45.67, "45.7"), (260.4, "260")],
)
def test_a_number_is_shown_with_the_digits_that_count(value: float, shown: str) -> None:
    assert tables.number(value) == shown


def test_the_table_of_bars_shows_limit_aim_median_spread_and_verdict() -> None:
    found = results(end_to_end_ratio=(0.6, 0.69, 0.8))
    verdicts = check_limits(read_limits(store.LIMITS, "bars"), found.medians)
    lines = {line[0]: line[1:] for line in tables.bars(verdicts, found)}
    assert lines["end_to_end_ratio"] == ("≥ 0.75", "0.850", "0.690", "0.600 to 0.800", "MISSED")
    assert lines["writes_per_job"] == ("= 3", "", "3", "", "met")
    assert lines["orphans_requeued_s"] == ("≤ 7 s", "5", "4.50", "", "aim reached")


def test_a_part_that_is_missing_is_shown_with_its_reason() -> None:
    found = results()
    found.left_out["peer"], found.failed["native"] = "no PostgreSQL", "no pods"
    lines = tables.figures(found, ())
    assert ("peer", "left out", "no PostgreSQL") in lines
    assert ("native", "FAILED", "no pods") in lines


def test_columns_that_some_rows_lack_are_empty_there() -> None:
    assert tables.rows(results().cpu) == [
        ("what", "etcd", "workers"),
        ("raw", "0.600", ""),
        ("end to end", "0.600", "1.50"),
    ]


def test_columns_of_the_terminal_are_even() -> None:
    shown = tables.terminal([("Bar", "Limit"), ("a-long-one", "1")]).splitlines()
    assert shown == ["Bar         Limit", "----------  -----", "a-long-one  1"]


def test_a_machine_that_others_used_is_told_of() -> None:
    assert "NOT QUIET" not in report.text(results(), [])
    assert "other programs had 20%" in report.text(results(foreign_share=(0.2,)), [])


def test_plots_are_drawn_of_rates_and_of_rows_that_count_something(tmp_path: Path) -> None:
    found = results()
    found.curves["writes-by-user"] = [{"user": "a", "ms": 1.0}, {"user": "b", "ms": 2.0}]
    found.curves["arrays"] = [{"items": n, "items/s": n / 2, "s": 2.0} for n in (10.0, 20.0)]
    files = report.plots(found, tmp_path)
    assert [file.name for file in files] == [
        "rates.svg",
        "raw-ceiling-jobs-per-s.svg",
        "arrays-items-per-s.svg",
    ]
    for file in files:
        assert ET.fromstring(file.read_text()).tag.endswith("svg")  # our own text


def test_a_plot_puts_more_higher_and_further_right() -> None:
    drawing = charts.line_chart("t", {"a<b": [(1, 10.0), (10, 20.0), (100, 5.0)]}, x="n", y="u")
    root = ET.fromstring(drawing)
    dots = [it for it in root.iter() if it.tag.endswith("circle")]
    across = [float(dot.attrib["cx"]) for dot in dots]
    down = [float(dot.attrib["cy"]) for dot in dots]
    assert across == sorted(across)
    assert down[1] < down[0] < down[2]
    assert across[1] - across[0] == pytest.approx(across[2] - across[1], abs=0.2)


def test_a_plot_of_nothing_but_zeros_can_be_drawn() -> None:
    assert ET.fromstring(charts.bar_chart("t", {"a": 0.0}, unit="")) is not None
    assert ET.fromstring(charts.line_chart("t", {"a": [(1, 0.0)]}, x="n", y="u")) is not None


def test_names_of_lines_that_end_close_together_do_not_cover_each_other() -> None:
    assert charts.spread_labels([100.0, 101.0, 40.0, 99.0]) == [87.0, 101.0, 40.0, 73.0]
