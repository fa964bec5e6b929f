"""Alerts and dashboard use what there is, and each alert says what to do."""

from pathlib import Path
from typing import Any

import pytest

from support.cluster.promql import (
    alert_rules,
    dashboard_panels,
    dashboard_queries,
    query_problems,
    query_usage,
    read_rules,
    with_shortened_durations,
)

ROOT = Path(__file__).parents[3]
ALERTS = alert_rules(read_rules())
RUNBOOKS = ROOT / "docs" / "runbooks"


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_uses_metrics_and_labels_of_the_table(rule: dict[str, Any]) -> None:
    assert query_problems(rule["expr"]) == []


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_has_a_severity_words_and_a_runbook(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert rule["annotations"]["summary"]
    assert rule["annotations"]["description"].endswith(".")
    runbook = ROOT / rule["annotations"]["runbook"]
    assert runbook == RUNBOOKS / f"{rule['alert']}.md"
    text = runbook.read_text(encoding="utf-8")
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == [f"# {rule['alert']}", "## What it means", "## What to do", "## See also"]


def test_every_runbook_is_some_alerts() -> None:
    pages = {page.stem for page in RUNBOOKS.glob("*.md")} - {"README"}
    assert pages == {rule["alert"] for rule in ALERTS}
    listed = (RUNBOOKS / "README.md").read_text(encoding="utf-8")
    assert all(f"]({page}.md)" in listed for page in pages)


@pytest.mark.parametrize("query", dashboard_queries())
def test_a_query_of_the_dashboard_uses_metrics_and_labels_of_the_table(query: str) -> None:
    assert query_problems(query) == []


def test_no_panel_lies_on_another_or_beside_the_page() -> None:
    shown = dashboard_panels()
    taken: set[tuple[int, int]] = set()
    for panel in shown:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in shown}) == len(shown)


def test_what_is_not_in_the_table_is_found() -> None:
    assert query_problems("asyncjob_nonsense > 0")[0] == "no metric asyncjob_nonsense"
    assert query_problems('asyncjob_jobs{tipe="x"}') == ["asyncjob_jobs has no label tipe"]
    assert query_problems("sum by (tipe) (asyncjob_jobs)") == ["no metric here has label tipe"]
    assert query_problems("rate(asyncjob_jobs_claimed[5m])") == [
        "no metric asyncjob_jobs_claimed",
        "it uses no metric of ours",
    ]
    assert query_problems("up == 0") == ["it uses no metric of ours"]


def test_a_query_is_taken_apart() -> None:
    found = query_usage(
        'sum by (le, queue) (rate(asyncjob_x_bucket{a="1",b=~"2|3"}[5m])) > on () 1'
    )
    assert found.selected == {"asyncjob_x_bucket": {"a", "b"}}
    assert found.grouped == {"le", "queue"}


def test_another_pace_changes_durations_and_nothing_else() -> None:
    rule = {"alert": "A", "expr": "increase(x[15m]) > 10", "for": "5m", "labels": {"a": "b"}}
    [quick] = alert_rules(
        with_shortened_durations({"groups": [{"name": "g", "rules": [rule]}]}, 0.5)
    )
    assert quick == {**rule, "expr": "increase(x[7500ms]) > 10", "for": "2500ms"}
    assert rule["for"] == "5m"
