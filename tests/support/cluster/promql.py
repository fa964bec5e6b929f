"""Alerts and dashboard as the chart ships them, and which metrics and labels their queries use.

The alerts are written for Prometheus as they are, or with shortened durations. The reader of
queries is no parser: enough to compare the project's own queries with the table of metrics.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from asyncjob.metrics import TABLE, MetricSpec, MetricType

SHIPPED = Path(__file__).resolve().parents[3] / "charts/asyncjob/files"
ALERTS_FILE = SHIPPED / "alerts.yaml"

_WINDOW = re.compile(r"\[(\d+)([smhd])\]")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def read_rules(file: Path = ALERTS_FILE) -> dict[str, Any]:
    """Return the file as Prometheus reads it."""
    rules: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return rules


def dashboard_panels() -> list[dict[str, Any]]:
    """Return the panels of the dashboard."""
    panels: list[dict[str, Any]] = json.loads((SHIPPED / "dashboard.json").read_text())["panels"]
    return panels


def dashboard_queries() -> list[str]:
    """Return all queries of the dashboard, those for its variables apart."""
    return [one["expr"] for panel in dashboard_panels() for one in panel.get("targets", [])]


def alert_rules(rules: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all alerts of all groups."""
    return [rule for group in rules["groups"] for rule in group["rules"]]


def with_shortened_durations(rules: dict[str, Any], seconds_per_minute: float) -> dict[str, Any]:
    """Return the same alerts with every duration shortened: what is a minute takes so long.

    Thresholds stay as they are; `for` and the windows of ranges are whole milliseconds.
    """
    groups = [
        {
            **group,
            "rules": [
                _with_shortened_durations(rule, seconds_per_minute) for rule in group["rules"]
            ],
        }
        for group in rules["groups"]
    ]
    return {**rules, "groups": groups}


def _with_shortened_durations(rule: dict[str, Any], seconds_per_minute: float) -> dict[str, Any]:
    def shorten(number: str, unit: str) -> str:
        return f"{int(int(number) * _SECONDS[unit] * seconds_per_minute / 60 * 1000)}ms"

    expr = _WINDOW.sub(lambda found: f"[{shorten(found[1], found[2])}]", rule["expr"])
    waits = {"for": shorten(rule["for"][:-1], rule["for"][-1])} if "for" in rule else {}
    return {**rule, "expr": expr, **waits}


_SELECTOR = re.compile(r"\b(?P<name>asyncjob_\w+)\b\s*(?:\{(?P<labels>[^}]*)\})?")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_GROUPING = re.compile(r"\b(?:by|on|ignoring|without)\s*\(([^)]*)\)")

TARGET_LABELS = frozenset({"instance", "job", "namespace", "pod"})
"""Labels that Prometheus, set up as the how-to says, puts onto what it scrapes."""


@dataclass(frozen=True, slots=True)
class QueryUsage:
    """Series by name with the labels they are selected by, and labels that results are put by."""

    selected: Mapping[str, frozenset[str]]
    grouped: frozenset[str]


def series_names(spec: MetricSpec) -> frozenset[str]:
    """Return the names of a metric that queries may use."""
    if spec.kind is MetricType.HISTOGRAM:
        return frozenset(f"{spec.name}_{end}" for end in ("bucket", "sum", "count"))
    return frozenset({spec.exposed_name})


def query_usage(query: str) -> QueryUsage:
    """Return what a query uses."""
    selected: dict[str, frozenset[str]] = {}
    for found in _SELECTOR.finditer(query):
        labels = frozenset(_MATCHER.findall(found["labels"] or ""))
        selected[found["name"]] = selected.get(found["name"], frozenset()) | labels
    grouped = [label.strip() for found in _GROUPING.findall(query) for label in found.split(",")]
    return QueryUsage(selected, frozenset(filter(None, grouped)))


def query_problems(query: str) -> list[str]:
    """Return what a query uses that is not in the table."""
    uses = query_usage(query)
    known = {
        series: _labels(spec.labels, series) for spec in TABLE for series in series_names(spec)
    }
    problems = [f"no metric {name}" for name in uses.selected if name not in known]
    selected = {name: labels for name, labels in uses.selected.items() if name in known}
    for name, labels in selected.items():
        problems += [f"{name} has no label {label}" for label in sorted(labels - known[name])]
    available = frozenset[str]().union(*(known[name] for name in selected))
    problems += [f"no metric here has label {one}" for one in sorted(uses.grouped - available)]
    return problems if selected else [*problems, "it uses no metric of ours"]


def _labels(labels: tuple[str, ...], series: str) -> frozenset[str]:
    return frozenset(labels) | TARGET_LABELS | ({"le"} if series.endswith("_bucket") else set())
