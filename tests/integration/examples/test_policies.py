"""The API server takes every manifest under `examples/policies` as it stands."""

import json
from pathlib import Path

import pytest
import yaml

from asyncjob.lifecycle.policy import read_policy_layer, resolve_policy
from asyncjob_dev.controlplane import ControlPlane

ROOT = Path(__file__).parents[3]
MANIFESTS = sorted((ROOT / "examples" / "policies").glob("*.yaml"))

pytestmark = pytest.mark.integration

each_manifest = pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)


def test_there_are_manifests_to_try() -> None:
    assert MANIFESTS


@each_manifest
def test_a_manifest_is_accepted_without_an_unknown_field_and_waits_for_a_worker(
    control_plane: ControlPlane, namespace: str, path: Path
) -> None:
    here = f"--namespace={namespace}"
    control_plane.kubectl("create", here, "--validate=strict", f"--filename={path}")

    stored = json.loads(
        control_plane.kubectl("get", here, "asyncjob", path.stem, "--output=json").stdout
    )

    assert stored["status"]["phase"] == "Queued"


@each_manifest
def test_the_stored_job_resolves_to_the_policy_of_its_manifest(
    control_plane: ControlPlane, namespace: str, path: Path
) -> None:
    manifest = yaml.safe_load(path.read_text())

    applied = control_plane.kubectl(
        "apply", f"--namespace={namespace}", f"--filename={path}", "--output=json"
    )

    spec = json.loads(applied.stdout)["spec"]

    assert spec["retryPolicy"] == manifest["spec"]["retryPolicy"]
    assert resolve_policy(read_policy_layer(spec)) == resolve_policy(
        read_policy_layer(manifest["spec"])
    )


@each_manifest
def test_the_policy_of_a_job_cannot_be_changed_afterwards(
    control_plane: ControlPlane, namespace: str, path: Path
) -> None:
    here = f"--namespace={namespace}"
    control_plane.kubectl("apply", here, f"--filename={path}")

    refused = control_plane.kubectl(
        "patch",
        here,
        "asyncjob",
        path.stem,
        "--type=merge",
        '--patch={"spec":{"retryPolicy":{"maxRetries":99}}}',
        check=False,
    )

    assert refused.returncode != 0
    assert "retryPolicy" in refused.stderr
