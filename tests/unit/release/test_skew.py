"""What may not change in a CRD from one version to the next."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.cluster.releases import RELEASES, ROOT, Release
from support.judging.crd_compatibility import incompatibilities

FILES = ("asyncjobs.yaml", "asyncqueues.yaml", "asynccronjobs.yaml")


def crd(path: Path) -> Any:
    return yaml.load(path.read_text(), Loader=yaml.CSafeLoader)


@pytest.fixture(scope="module")
def today() -> Any:
    return crd(ROOT / "crds" / "asyncjobs.yaml")


COUNTERS = ("retries", "crashes", "releases", "parks", "redrives", "reruns")
DECIDED = {
    # ADR 40: what is 0 is absent. All parts of that version take what is absent for 0.
    ("0.1.0-preview", "asyncjobs.yaml"): {
        f".status.{name}: default has changed" for name in COUNTERS if name != "parks"
    },
}
"""What has changed on purpose since a version, which the changelog tells."""


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)
def test_who_goes_by_the_crds_of_a_version_before_finds_all_of_it(
    release: Release, file: str
) -> None:
    before = crd(release.chart / "files/crds" / file)
    found = incompatibilities(before, crd(ROOT / "crds" / file))
    assert set(found) == DECIDED.get((release.version, file), set())


def at(obj: Any, path: str) -> Any:
    """Return what is at a path of the CRD's only version."""
    found = obj["spec"]["versions"][0]
    for step in path.split("/"):
        found = found[int(step) if step.isdigit() else step]
    return found


STATUS = "schema/openAPIV3Schema/properties/status/properties"


@pytest.mark.parametrize(
    ("path", "key", "value", "said"),
    [
        ("additionalPrinterColumns/0", "jsonPath", ".status.x", "column Phase shows something"),
        ("additionalPrinterColumns/0", "name", "State", "column Phase is gone"),
        ("selectableFields/0", "jsonPath", ".spec.x", "selectable field .spec.queue is gone"),
        (f"{STATUS}/attempt", "type", "string", ".status.attempt: type has changed"),
        (f"{STATUS}/attempt", "maximum", 5, ".status.attempt: maximum is lower"),
        (f"{STATUS}/attempt", "minimum", 1, ".status.attempt: minimum is higher"),
        (f"{STATUS}/message", "maxLength", 5, ".status.message: maxLength is lower"),
        (f"{STATUS}/message", "pattern", "x", ".status.message: pattern has changed"),
        (f"{STATUS}/message", "enum", ["a"], ".status.message: value any is gone"),
        (f"{STATUS}/phase", "enum", ["Queued"], ".status.phase: value Pending is gone"),
        (f"{STATUS}/phase", "default", "Pending", ".status.phase: default has changed"),
        (f"{STATUS}/lease", "required", ["other"], ".status.lease.other is required now"),
        (f"{STATUS}/history/items/properties/phase", "type", "integer", ".status.history[].phase"),
        (f"{STATUS}", "lease", None, ".status.lease is gone"),
    ],
)
def test_what_is_taken_away_is_named(
    today: Any, path: str, key: str, value: Any, said: str
) -> None:
    after = deepcopy(today)
    if value is None:
        del at(after, path)[key]
    else:
        at(after, path)[key] = value
    found = incompatibilities(today, after)
    assert any(one.startswith(said) for one in found), found


def test_names_stay(today: Any) -> None:
    after = deepcopy(today)
    after["spec"]["names"]["shortNames"] = []
    after["spec"]["names"]["kind"] = "Job"
    after["spec"]["scope"] = "Cluster"
    assert incompatibilities(today, after) == [
        "scope is Cluster, it was Namespaced",
        "names.kind has changed",
        "names.shortNames: aj is gone",
    ]


def test_what_is_added_or_loosened_takes_nothing(today: Any) -> None:
    after = deepcopy(today)
    at(after, STATUS)["news"] = {"type": "string"}
    at(after, f"{STATUS}/message")["maxLength"] = 4096
    at(after, f"{STATUS}/phase")["enum"].append("Frozen")
    at(after, "additionalPrinterColumns").append({"name": "X", "type": "string", "jsonPath": ".x"})
    assert incompatibilities(today, after) == []
