"""A real Prometheus on loopback, that scrapes processes under test and judges the alerts."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml

from asyncjob_dev.binaries import resolve
from asyncjob_dev.ports import free_port
from support.cluster.promql import read_rules, with_shortened_durations
from support.driven.jobs import until

EVERY = "300ms"


class Prometheus:
    """A context manager; `targets` are ports by name, a minute of the alerts takes `minute` s."""

    def __init__(self, folder: Path, targets: Mapping[str, int], minute: float) -> None:
        self._folder = folder
        self._port = free_port()
        rules = folder / "alerts.yaml"
        rules.write_text(yaml.safe_dump(with_shortened_durations(read_rules(), minute)))
        config = {
            "global": {"scrape_interval": EVERY, "scrape_timeout": EVERY},
            "rule_files": [str(rules)],
            "scrape_configs": [
                {
                    "job_name": name,
                    "honor_labels": True,
                    "static_configs": [{"targets": [f"127.0.0.1:{port}"]}],
                }
                for name, port in targets.items()
            ],
        }
        config["global"]["evaluation_interval"] = EVERY  # type: ignore[index]  # a literal of ours
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))

    def __enter__(self) -> Self:
        with (self._folder / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    resolve("prometheus").path,
                    f"--config.file={self._folder / 'prometheus.yaml'}",
                    f"--storage.tsdb.path={self._folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self._port}",
                ],
                stdout=log,
                stderr=log,
            )
        until(self._is_ready, 20, "Prometheus")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()

    def query(self, expr: str) -> list[dict[str, Any]]:
        """Return the samples of a query; a query that cannot be parsed is an error."""
        found: list[dict[str, Any]] = self._get("query", query=expr)["result"]
        return found

    def firing(self) -> dict[str, dict[str, str]]:
        """Return the labels of the alerts that fire, by name."""
        alerts = self._get("alerts")["alerts"]
        return {
            one["labels"]["alertname"]: one["labels"] for one in alerts if one["state"] == "firing"
        }

    def until_firing(self, alert: str, within: float = 10.0) -> dict[str, str]:
        """Wait until the alert fires and return its labels."""
        return until(lambda: self.firing().get(alert), within, f"{alert} firing")

    def until_clear(self, alert: str, within: float = 10.0) -> None:
        """Wait until the alert does not fire any more."""
        until(lambda: alert not in self.firing(), within, f"{alert} cleared")

    def ill(self) -> list[str]:
        """Return what is wrong with rules that could not be evaluated."""
        groups = self._get("rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        assert rules
        return [f"{one['name']}: {one}" for one in rules if one["health"] != "ok"]

    def _get(self, what: str, **params: str) -> Any:
        url = f"http://127.0.0.1:{self._port}/api/v1/{what}?{urlencode(params)}"
        try:
            with urlopen(url, timeout=5) as answer:
                return json.loads(answer.read())["data"]
        except HTTPError as error:
            raise AssertionError(f"{params}: {error.read().decode()}") from error

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, (self._folder / "prometheus.log").read_text()
        try:
            with urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=5):
                return True
        except OSError:
            return False
