"""Puts into a cluster what asyncjob needs there: CRDs, policies, roles."""

from collections.abc import Sequence
from pathlib import Path

from asyncjob.names import CRON_JOBS, GROUP, JOBS, QUEUES
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.environment.errors import ManifestsMissingError
from asyncjob_dev.environment.layout import ROOT

DEV_MANIFESTS = ROOT / "dev" / "manifests"
MANIFESTS = (ROOT / "crds", DEV_MANIFESTS)
ESTABLISHED_WITHIN_SECONDS = 30


def install(plane: ControlPlane, manifests: Sequence[Path] = MANIFESTS) -> None:
    """Apply everything; returns when the API server serves the new types."""
    for folder in manifests:
        if not any(folder.glob("*.yaml")):
            raise ManifestsMissingError(folder)
        plane.kubectl("apply", "-f", str(folder))
    names = [f"crd/{plural}.{GROUP}" for plural in (JOBS, QUEUES, CRON_JOBS)]
    timeout = f"--timeout={ESTABLISHED_WITHIN_SECONDS}s"
    plane.kubectl("wait", "--for=condition=Established", timeout, *names)
