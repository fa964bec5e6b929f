"""What docs/how-to/gitops.md says of the chart."""

import re
from pathlib import Path
from typing import Any

import pytest

from asyncjob.rules.policies import POLICIES
from support.cluster.charts import ROOT, Helm, Rendered, scenario

PAGE = (ROOT / "docs/how-to/gitops.md").read_text()
GUARDED = ("CustomResourceDefinition", "ValidatingAdmissionPolicy")
KINDS = list((ROOT / "crds").glob("async*.yaml"))
SYNC = "argocd.argoproj.io/sync-options"


@pytest.fixture(scope="module")
def applications(helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> list[Rendered]:
    """Render the values of the page's two Applications."""
    block = re.search(r"```yaml\n(# cluster.*?)```", PAGE, re.DOTALL)
    assert block
    folder: Path = tmp_path_factory.mktemp("values")
    found = []
    for number, text in enumerate(block[1].split("---\n")):
        file = folder / f"{number}.yaml"
        file.write_text(text)
        found.append(helm.render(file))
    return found


def annotations(item: Any) -> dict[str, str]:
    return item["metadata"].get("annotations") or {}


def test_one_application_has_what_belongs_to_the_cluster_and_the_other_all_else(
    applications: list[Rendered],
) -> None:
    cluster, team = ({item["kind"] for item in one.objects} for one in applications)

    assert cluster == {*GUARDED, "ValidatingAdmissionPolicyBinding", "ClusterRole"}
    assert "Deployment" in team
    assert not team & set(GUARDED)


def test_what_must_not_be_pruned_says_so_and_keeps_what_it_had(
    applications: list[Rendered],
) -> None:
    guarded = [item for item in applications[0].objects if item["kind"].startswith(GUARDED)]

    assert len(guarded) == len(KINDS) + 2 * len(POLICIES)
    for item in guarded:
        assert annotations(item)[SYNC] == "Prune=false,Delete=false"
        assert annotations(item)["helm.sh/resource-policy"] == "keep"


def test_annotations_of_all_other_objects_are_others(helm: Helm) -> None:
    values = {"commonAnnotations": {"a": "b"}, "crds.keep": False, "policies.keep": False}
    for item in helm.render(scenario("default"), values=values).objects:
        is_guarded = item["kind"].startswith(GUARDED)
        assert ("a" in annotations(item)) is not is_guarded, item["metadata"]["name"]
        assert not (is_guarded and "helm.sh/resource-policy" in annotations(item))


def test_the_check_is_a_hook_that_argo_cd_knows(helm: Helm) -> None:
    [check] = [one for one in helm.render().of("Job") if one["metadata"]["name"].endswith("flight")]
    assert annotations(check)["helm.sh/hook"] == "post-install,post-upgrade,post-rollback"
    assert helm.render(values={"preflight.enabled": False}).of("Job") == []
