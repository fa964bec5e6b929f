"""The page about performance, filled from published results."""

import shutil
from pathlib import Path

import pytest

from asyncjob_bench import page, store
from asyncjob_bench.errors import BenchError
from asyncjob_bench.page import NOT_MEASURED
from asyncjob_bench.stats import tables
from asyncjob_bench.stats.limits import read_limits
from asyncjob_bench.stats.results import Results, Spread
from asyncjob_dev.reference.blocks import names
from support.objects.measured import results

TEXT = """\
# Performance

<!-- measured: bars -->
old
<!-- /measured -->

<!-- measured: curve.workers -->
<!-- /measured -->

<!-- measured: plots -->
<!-- /measured -->
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    file = tmp_path / "performance.md"
    file.write_text(TEXT, encoding="utf-8")
    return file


def test_what_nobody_has_published_is_called_not_measured(written: Path, tmp_path: Path) -> None:
    page.refresh(only_check=False, page=written, shown=tmp_path / "none")
    assert written.read_text(encoding="utf-8").count(NOT_MEASURED) == 3


def test_published_results_fill_tables_and_draw_plots(written: Path, tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    store.write(results(), shown, store.LATEST)
    assert page.refresh(only_check=False, page=written, shown=shown) == [written]
    text = written.read_text(encoding="utf-8")
    assert "| jobs_s_per_api_core | ≥ 100 | 120 | 130 | 128 to 132 | aim reached |" in text
    assert text.count(NOT_MEASURED) == 1
    assert "![rates](performance/rates.svg)" in text
    assert (shown / "rates.svg").exists()
    assert page.refresh(only_check=False, page=written, shown=shown) == []


def test_only_whole_runs_on_a_quiet_machine_are_published(tmp_path: Path) -> None:
    out, shown = tmp_path / "out", tmp_path / "shown"
    with pytest.raises(BenchError, match="run `make bench` first"):
        page.publish(out, shown)
    small = results()
    small.run["scale"] = "small"
    failed = results()
    failed.failed["peer"] = "broke off"
    for unfit in (small, failed, results(foreign_share=(0.06,)), results(jobs_s_per_api_core=())):
        store.write(unfit, out, store.LATEST)
        with pytest.raises(BenchError, match="on a quiet machine"):
            page.publish(out, shown)
    assert not shown.exists()
    store.write(results(foreign_share=(0.02,)), out, store.LATEST)
    page.publish(out, shown)
    assert store.read(shown / store.LATEST).medians["foreign_share"] == 0.02


def test_a_run_of_some_parts_stands_beside_the_last_whole_one(
    written: Path, tmp_path: Path
) -> None:
    out, shown = tmp_path / "out", tmp_path / "shown"
    store.write(results(), out, store.LATEST)
    page.publish(out, shown)
    some = Results(spreads={"parked_requests": Spread((0.0,))})
    some.run = results().run | {"parts": ["parked"], "began": "2026-02-01T00:00:00+00:00"}
    shutil.rmtree(out)  # as on another machine, which has not measured the whole
    for name in (store.LATEST, store.SOME_PARTS):
        store.write(some, out, name)
    page.publish(out, shown)
    assert store.read(shown / store.LATEST).run == results().run
    assert [run.run for run in page.read_runs(shown)] == [results().run]
    written.write_text(
        "<!-- measured: parts -->\n<!-- /measured -->\n\n"
        "<!-- measured: parts.machine -->\n<!-- /measured -->\n",
        encoding="utf-8",
    )
    page.refresh(only_check=False, page=written, shown=shown)
    text = written.read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if "| = 0 |" in line] == [
        "| parked_requests | = 0 |  | 0 |  | met |"
    ]
    assert "| parts | parked |" in text
    assert "jobs_s_per_api_core" not in text


def test_a_run_of_some_parts_leaves_what_other_parts_have_shown(tmp_path: Path) -> None:
    out, shown = tmp_path / "out", tmp_path / "shown"
    for day, parts, found in (
        (
            1,
            ["parked", "waits"],
            {"parked_requests": Spread((0.0,)), "waits_writes": Spread((8.0,))},
        ),
        (2, ["waits"], {"waits_writes": Spread((9.0,))}),
        (3, ["arrays"], {"array_items_over_peer": Spread((50.0,))}),
    ):
        some = Results(spreads=found)
        some.run = results().run | {"parts": parts, "began": f"2026-02-0{day}T00:00:00+00:00"}
        store.write(some, out, store.SOME_PARTS)
        page.publish(out, shown)
        page.publish(out, shown)  # once more changes nothing
    kept = store.read(shown / store.SOME_PARTS)
    assert kept.medians == {
        "parked_requests": 0.0,
        "waits_writes": 9.0,
        "array_items_over_peer": 50.0,
    }
    assert kept.run["parts"] == ["arrays"]
    assert kept.run["measured earlier"] == {
        "parked": "2026-02-01T00:00:00+00:00",
        "waits": "2026-02-02T00:00:00+00:00",
    }


def test_a_curve_leaves_the_others_that_are_shown(tmp_path: Path) -> None:
    out, shown = tmp_path / "out", tmp_path / "shown"
    for day, curve in ((1, "workers"), (2, "arrays"), (3, "arrays")):
        some = Results(curves={curve: [{"jobs/s": float(day)}]})
        some.run = results().run | {"parts": [curve], "began": f"2026-02-0{day}T00:00:00+00:00"}
        store.write(some, out, store.CURVES)
        page.publish(out, shown)
    kept = store.read(shown / store.CURVES)
    assert kept.curves == {"workers": [{"jobs/s": 1.0}], "arrays": [{"jobs/s": 3.0}]}
    assert kept.run["measured earlier"] == {"workers": "2026-02-01T00:00:00+00:00"}
    shown_dates = page.blocks({store.CURVES: kept}, [])["dates"]()
    assert "| curves | arrays: 2026-02-03T00:00:00+00:00; workers: 2026-02-01" in shown_dates


def test_the_last_three_complete_quiet_runs_stand_side_by_side(
    written: Path, tmp_path: Path
) -> None:
    out, shown = tmp_path / "out", tmp_path / "shown"
    for day, rate, others in (
        (1, (121.0,), 0.01),
        (2, (122.0,), 0.01),
        (3, (123.0,), 0.5),
        (4, (), 0.01),
        (5, (125.0,), 0.01),
        (6, (96.5,), 0.01),
    ):
        run = results(jobs_s_per_api_core=rate, foreign_share=(others,))
        run.run["began"] = f"2026-01-0{day}T00:00:00+00:00"
        store.write(run, out, store.LATEST)
    (out / "runs" / f"2026-01-07-{store.LATEST}").write_text("{}", encoding="utf-8")
    written.write_text("<!-- measured: runs -->\n<!-- /measured -->\n", encoding="utf-8")
    page.publish(out, shown)
    page.refresh(only_check=False, page=written, shown=shown)
    text = written.read_text(encoding="utf-8")
    assert "| jobs_s_per_api_core | ≥ 100 | 120 | 122 | 125 | **96.5** |" in text
    assert [day for day in range(1, 7) if f"2026-01-0{day}" in text] == [2, 5, 6]


def test_published_results_are_written_beside_the_limits(tmp_path: Path) -> None:
    limits = tmp_path / "limits.toml"
    limits.write_text(store.LIMITS.read_text(encoding="utf-8"), encoding="utf-8")
    store.write(results(end_to_end_ratio=(0.8, 0.82, 0.81)), tmp_path, store.LATEST)
    before = read_limits(limits, "bars")
    page.annotate_limits(limits, tmp_path)
    text = limits.read_text(encoding="utf-8")
    assert "# Measured: mean 0.810 (0.800 to 0.820); headroom 8%.\nend_to_end_ratio" in text
    assert "not yet" not in text
    assert read_limits(limits, "bars") == before


def test_a_check_changes_nothing(written: Path, tmp_path: Path) -> None:
    assert page.refresh(only_check=True, page=written, shown=tmp_path) == [written]
    assert written.read_text(encoding="utf-8") == TEXT


def test_the_page_in_the_repository_is_up_to_date() -> None:
    assert page.refresh(only_check=True) == []


def test_what_is_measured_is_left_alone_by_what_is_generated() -> None:
    assert names(TEXT) == []


def test_the_page_begins_with_rates_and_those_per_core_of_the_api_server() -> None:
    assert tables.headline(results()) == [
        ("What", "a second", "a second and core of the API server"),
        ("asyncjob", "205", "130"),
        ("its three writes, by a generator in Go", "260", ""),
        ("native Jobs", "32", ""),
    ]
