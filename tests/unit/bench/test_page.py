"""The page about performance, filled from published results."""

from pathlib import Path

import pytest

from asyncjob_bench import page, store
from asyncjob_dev.reference.blocks import names
from support.measured import results

TEXT = """\
# Performance

<!-- measured: bars -->
old
<!-- /measured -->

<!-- measured: curve.workers -->
<!-- /measured -->
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    file = tmp_path / "performance.md"
    file.write_text(TEXT, encoding="utf-8")
    return file


def test_what_nobody_has_published_is_called_not_measured(written: Path, tmp_path: Path) -> None:
    page.refresh(only_check=False, page=written, shown=tmp_path / "none")
    assert written.read_text(encoding="utf-8").count(page.NOTHING) == 2


def test_published_results_fill_tables_and_draw_plots(written: Path, tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    store.write(results(), shown, store.LATEST)
    assert page.refresh(only_check=False, page=written, shown=shown) == [written]
    text = written.read_text(encoding="utf-8")
    assert "| native_ratio | ≥ 5 | 6 | 6.50 | 6.40 to 6.60 | aim reached |" in text
    assert text.count(page.NOTHING) == 1
    assert (shown / "rates.svg").exists()
    assert page.refresh(only_check=False, page=written, shown=shown) == []


def test_a_check_changes_nothing(written: Path, tmp_path: Path) -> None:
    assert page.refresh(only_check=True, page=written, shown=tmp_path) == [written]
    assert written.read_text(encoding="utf-8") == TEXT


def test_the_page_in_the_repository_is_up_to_date() -> None:
    assert page.refresh(only_check=True) == []


def test_what_is_measured_is_left_alone_by_what_is_generated() -> None:
    assert names(TEXT) == []
