"""The steps that are suites of tests already: an upgrade, the images, the chart on a real node."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from asyncjob_dev.node.programs import missing_requirements
from asyncjob_dev.rehearsal.builds import CHART_FILES
from asyncjob_dev.rehearsal.distributions import StepError, run
from asyncjob_dev.rehearsal.report import Check, not_tried, ok
from asyncjob_dev.supply import IMAGES, make_bill

NODE_TESTS: Final = (
    "tests/e2e/test_chart.py",
    "tests/e2e/test_uninstall.py::test_uninstalling_leaves_jobs_and_kinds_unless_asked_not_to",
)
"""From `helm install` to a first job that has succeeded, and `helm uninstall`."""


def upgrade(root: Path) -> Iterator[Check]:
    """Upgrade the chart from each recorded release, with jobs at every point of their lives."""
    releases = sorted(one.name for one in (root / "tests/releases").iterdir() if one.is_dir())
    yield _tests(f"chart from {', '.join(releases)}", root, "tests/charts/test_upgrade.py")
    yield not_tried("distributions from an earlier release", "none has been published")


def sbom(root: Path) -> Iterator[Check]:
    """Make the bill of materials of each image."""
    for image in IMAGES:
        made = make_bill(image, root, root / "dist" / "sbom")
        yield ok(made.name, f"{made.stat().st_size:,} bytes")


def images(root: Path) -> Iterator[Check]:
    """Build the images and run jobs in them."""
    if missing := missing_requirements(os.environ):
        yield not_tried("images", "; ".join(missing))
        return
    yield _tests("images of worker and operator", root, "tests/packaging")


def node(root: Path) -> Iterator[Check]:
    """Install the packaged chart on a real node, see the first job succeed, and uninstall."""
    if missing := missing_requirements(os.environ):
        yield not_tried("helm install on a node", "; ".join(missing))
        return
    packed = next((root / CHART_FILES).glob("*.tgz"), None)
    if packed is None:
        raise StepError("no packaged chart: run the step chart first")
    chosen = {"ASYNCJOB_E2E_TARGET": "node", "ASYNCJOB_E2E_CHART": str(packed.absolute())}
    yield _tests(f"helm install {packed.name}", root, *NODE_TESTS, variables=chosen)


def _tests(what: str, root: Path, *tests: str, variables: Mapping[str, str] | None = None) -> Check:
    """Run tests; what was seen is pytest's last line."""
    command = [sys.executable, "-m", "pytest", *tests, "-q", "-n0", "--no-header"]
    said = run(command, cwd=root, env={**os.environ, **(variables or {})})
    return tested(what, said)


def tested(what: str, said: str) -> Check:
    """Return what pytest's output, which ends with its counts, says of a check."""
    last = said.rstrip().rsplit("\n", 1)[-1].strip("= ")
    return ok(what, last) if " passed" in last else not_tried(what, last)
