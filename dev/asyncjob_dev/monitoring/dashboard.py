"""The dashboard as Grafana's JSON, laid out from the rows of panels."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from asyncjob_dev.monitoring.panels import ROWS, Panel, PanelRow

FILE = Path(__file__).resolve().parents[3] / "charts/asyncjob/files/dashboard.json"

SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
WIDTH: Final = 24
HEIGHTS: Final = {"stat": 4, "timeseries": 7}


def dashboard() -> dict[str, Any]:
    """Return the whole dashboard; it asks for its data source, namespaces and queues."""
    return {
        "title": "asyncjob",
        "uid": "asyncjob",
        "tags": ["asyncjob"],
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "schemaVersion": 39,
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": list(_variables())},
        "panels": list(_laid_out()),
    }


def text() -> str:
    """Return it as it is written to its file."""
    return json.dumps(dashboard(), indent=2) + "\n"


def queries(shown: dict[str, Any]) -> list[str]:
    """Return all queries of a dashboard, those for its variables apart."""
    return [one["expr"] for panel in shown["panels"] for one in panel.get("targets", [])]


def _variables() -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data"}
    for name, of in (("namespace", ""), ("queue", '{namespace=~"$namespace"}')):
        query = f"label_values(asyncjob_jobs{of}, {name})"
        yield {
            "name": name,
            "label": name.capitalize(),
            "type": "query",
            "datasource": SOURCE,
            "query": {"query": query, "refId": name},
            "definition": query,
            "refresh": 2,
            "sort": 1,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        }


def _laid_out() -> Iterator[dict[str, Any]]:
    top, number = 0, 1
    for row in ROWS:
        yield _heading(row, number, top)
        top, number, left = top + 1, number + 1, 0
        for panel in row.panels:
            if left + panel.width > WIDTH:
                left, top = 0, top + HEIGHTS[panel.kind]
            yield _panel(panel, number, {"x": left, "y": top})
            left, number = left + panel.width, number + 1
        top += HEIGHTS[row.panels[-1].kind]


def _heading(row: PanelRow, number: int, top: int) -> dict[str, Any]:
    place = {"x": 0, "y": top, "w": WIDTH, "h": 1}
    return {"id": number, "type": "row", "title": row.title, "gridPos": place, "panels": []}


def _panel(panel: Panel, number: int, corner: dict[str, int]) -> dict[str, Any]:
    shared = {"decimals": 0} if panel.kind == "stat" and panel.unit == "short" else {}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.meaning,
        "datasource": SOURCE,
        "gridPos": {**corner, "w": panel.width, "h": HEIGHTS[panel.kind]},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, **shared}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + at),
                "datasource": SOURCE,
                "expr": expr,
                "legendFormat": legend,
            }
            for at, (expr, legend) in enumerate(panel.queries)
        ],
    }
