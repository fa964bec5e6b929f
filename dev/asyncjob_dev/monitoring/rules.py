"""The file of alerts, for Prometheus as it is or at another pace."""

import re
from pathlib import Path
from typing import Any

import yaml

ALERTS_FILE = Path(__file__).resolve().parents[3] / "charts/asyncjob/files/alerts.yaml"

_WINDOW = re.compile(r"\[(\d+)([smhd])\]")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def read_rules(file: Path = ALERTS_FILE) -> dict[str, Any]:
    """Return the file as Prometheus reads it."""
    rules: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return rules


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
