"""Helm, built once, and a control plane with the CRDs, for what only a real API server can tell."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from asyncjob_dev.binaries import resolve
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.charts import ROOT, SCENARIOS, Helm, Rendered


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Find or build Helm."""
    return Helm(resolve("helm").path, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def rendered(helm: Helm) -> dict[str, Rendered]:
    """Render every scenario once, by its name."""
    return {path.stem: helm.render(path) for path in SCENARIOS}


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """Run a control plane that knows our kinds."""
    with ControlPlane() as plane:
        plane.kubectl("apply", f"--filename={ROOT / 'crds'}")
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        yield plane


@pytest.fixture
def bare_plane() -> Iterator[ControlPlane]:
    """Run a control plane on which nothing is installed."""
    with ControlPlane() as plane:
        yield plane


@pytest.fixture
def other_chart(tmp_path: Path, helm: Helm) -> Helm:
    """Return a Helm with a copy of the chart that a test may change."""
    shutil.copytree(helm.chart, tmp_path / "asyncjob")
    return Helm(helm.program, helm.home, tmp_path / "asyncjob")
