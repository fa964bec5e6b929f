"""Workflows: what they call exists, whom they trust is pinned, where they publish is not here."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yaml"))
HOSTS = re.compile(r"ghcr\.io|docker\.io|quay\.io|gcr\.io|pypi\.org|amazonaws|azurecr")

by_name = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def jobs(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())["jobs"]
    return found


def steps(path: Path) -> list[Any]:
    return [step for job in jobs(path).values() for step in job["steps"]]


def commands(path: Path) -> list[str]:
    """Return what each step runs, and what a matrix has a step run."""
    rows = [
        row
        for job in jobs(path).values()
        for row in job.get("strategy", {}).get("matrix", {}).get("include", ())
    ]
    return [one["run"] for one in steps(path) if "run" in one] + [row["command"] for row in rows]


@by_name
def test_every_action_is_pinned_to_a_commit_with_its_version_beside_it(path: Path) -> None:
    used = re.findall(r"uses: (.*)", path.read_text())
    assert used
    for one in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one), one


@by_name
def test_no_registry_is_named(path: Path) -> None:
    assert not HOSTS.search(path.read_text())


@by_name
def test_every_target_that_is_called_exists(path: Path) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = {
        word
        for command in commands(path)
        for line in re.findall(r"^\s*make (.+)$", command, re.MULTILINE)
        for word in line.split()
        if "=" not in word
    }
    assert called <= targets
    assert called or ".ci/run" in path.read_text()


@by_name
def test_every_test_that_is_called_exists(path: Path) -> None:
    called = {test for command in commands(path) for test in re.findall(r"tests/[\w./-]+", command)}
    assert {test for test in called if not (ROOT / test).exists()} == set()


@by_name
def test_a_job_may_do_no_more_than_it_says(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    wider = {name: job["permissions"] for name, job in jobs(path).items() if "permissions" in job}
    signs = {"release": {"contents": "write", "id-token": "write"}}
    assert wider == (signs if path.stem == "release" else {})
    for job in jobs(path).values():
        assert job["timeout-minutes"]
