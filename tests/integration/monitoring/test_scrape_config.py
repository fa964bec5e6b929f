"""The configuration on the page about monitoring is one that Prometheus takes, with the alerts.

Debian's Prometheus is built without the discovery of pods, so a target stands in the place of that
field, which has a test of its own.
"""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from asyncjob_dev.binaries import resolve
from support.cluster.promql import ALERTS_FILE
from support.docs.blocks import all_blocks

pytestmark = pytest.mark.integration

PAGE = "docs/how-to/monitor.md"
DISCOVERY = "kubernetes_sd_configs"


def shown() -> dict[str, Any]:
    """Return the configuration of the page."""
    [block] = [one for one in all_blocks() if (one.page, one.first) == (PAGE, "scrape_configs:")]
    read: dict[str, Any] = yaml.safe_load(block.text)
    return read


def complaints(config: dict[str, Any], folder: Path) -> str:
    """Return what promtool says of a configuration that also names the alerts, as the page asks."""
    [job] = config["scrape_configs"]
    job = {key: value for key, value in job.items() if key != DISCOVERY}
    job["static_configs"] = [{"targets": ["127.0.0.1:9100"]}]
    file = folder / "prometheus.yaml"
    content = {**config, "scrape_configs": [job], "rule_files": [str(ALERTS_FILE)]}
    file.write_text(yaml.safe_dump(content))
    done = subprocess.run(
        [resolve("promtool").path, "check", "config", file],
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_prometheus_takes_the_configuration_of_the_page(tmp_path: Path) -> None:
    assert complaints(shown(), tmp_path) == ""


def test_targets_are_found_by_their_pods_whose_labels_the_rest_goes_by() -> None:
    [job] = shown()["scrape_configs"]
    assert job[DISCOVERY] == [{"role": "pod"}]
    labels = [one for rule in job["relabel_configs"] for one in rule["source_labels"]]
    assert {one.removeprefix("__meta_kubernetes_").split("_")[0] for one in labels} == {
        *("pod", "namespace"),
    }


@pytest.mark.parametrize(
    ("field", "value"), [("action", "kept"), ("regex", "("), ("source_label", ["a"])]
)
def test_it_would_not_take_one_with_a_mistake(tmp_path: Path, field: str, value: object) -> None:
    config = shown()
    config["scrape_configs"][0]["relabel_configs"][0][field] = value
    assert "prometheus.yaml" in complaints(config, tmp_path)
