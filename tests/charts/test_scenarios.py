"""Every scenario below `charts/asyncjob/ci` against Helm's linter and a real API server."""

from pathlib import Path

import pytest
import yaml

from asyncjob_dev.controlplane import ControlPlane
from support.cluster.charts import NAMESPACE, SCENARIOS, Helm, Object, Rendered

FOREIGN = ("monitoring.coreos.com/", "keda.sh/")
"""Kinds of others, which not every cluster has; test_monitoring looks at their shape."""

NAMESPACES = (NAMESPACE, "team-a", "team-b", "elections")
ENFORCE = "pod-security.kubernetes.io/{}=restricted"


@pytest.fixture(scope="module")
def tenancy(control_plane: ControlPlane) -> ControlPlane:
    """Create the namespaces of the scenarios, under Pod Security `restricted`."""
    for name in NAMESPACES:
        control_plane.kubectl("create", "namespace", name)
        labels = [ENFORCE.format(mode) for mode in ("enforce", "warn")]
        control_plane.kubectl("label", "namespace", name, *labels)
    runtime = {"kind": "RuntimeClass", "metadata": {"name": "sandboxed"}, "handler": "sandboxed"}
    made = yaml.safe_dump({"apiVersion": "node.k8s.io/v1", **runtime})
    control_plane.kubectl("create", "--filename=-", input=made)
    for name in ("asyncjob-test", "jobs-test"):  # a pod alone is refused without its account
        control_plane.kubectl("create", "serviceaccount", name, f"--namespace={NAMESPACE}")
    return control_plane


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_linter_has_nothing_to_say(helm: Helm, path: Path) -> None:
    assert "0 chart(s) failed" in helm.lint(path)


@pytest.mark.integration
@pytest.mark.parametrize("name", [path.stem for path in SCENARIOS])
def test_the_api_server_takes_all_of_it_and_pod_security_does_not_mind(
    tenancy: ControlPlane, rendered: dict[str, Rendered], name: str
) -> None:
    ours = [item for item in rendered[name].objects if not item["apiVersion"].startswith(FOREIGN)]

    told = tenancy.kubectl(
        *("apply", "--dry-run=server", "--validate=strict", "--filename=-"),
        input=yaml.safe_dump_all(ours),
    )

    assert told.stdout.count("(server dry run)") == len(ours) > 10
    assert "PodSecurity" not in told.stderr


@pytest.mark.integration
def test_the_api_server_would_have_refused_a_misspelt_field(
    tenancy: ControlPlane, rendered: dict[str, Rendered]
) -> None:
    queue: Object = rendered["cluster-wide"].one("AsyncQueue", "reports")
    wrong = {**queue, "spec": {"unknownTypo": "Wait"}}

    told = tenancy.kubectl(
        *("apply", "--dry-run=server", "--validate=strict", "--filename=-"),
        input=yaml.safe_dump(wrong),
        check=False,
    )

    assert 'unknown field "spec.unknownTypo"' in told.stderr
