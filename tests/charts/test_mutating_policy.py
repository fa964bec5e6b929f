"""The policy that takes managedFields off jobs: only where the API server knows its kind."""

from typing import Any

import pytest

from support.charts import MUTATING, NAMESPACE, Helm, Object, scenario

KEPT = "All jobs have managedFields, so that each of their writes costs more; nothing else differs."


def installed(helm: Helm, *api_versions: str, **values: Any) -> list[Object]:
    """Return the policy and its binding, as they are rendered."""
    rendered = helm.render(values=values, api_versions=api_versions)
    return [*rendered.of("MutatingAdmissionPolicy"), *rendered.of("MutatingAdmissionPolicyBinding")]


def notes(helm: Helm, *flags: str) -> str:
    """Return what is said after an install."""
    where = ("mine", str(helm.chart), f"--namespace={NAMESPACE}")
    said = helm.run("install", "--dry-run=client", *where, *flags)
    return " ".join(said.partition("NOTES:")[2].split())


def test_an_api_server_that_knows_its_kind_gets_the_policy_and_one_that_does_not_does_not(
    helm: Helm,
) -> None:
    found = installed(helm, MUTATING)
    assert [one["metadata"]["name"] for one in found] == ["managed-fields.asyncjob.dev"] * 2
    assert found[1]["spec"] == {"policyName": "managed-fields.asyncjob.dev"}
    assert installed(helm) == []


@pytest.mark.parametrize(
    "values", [{"policies.mutating": False}, {"policies.install": False}], ids=str
)
def test_it_can_be_left_out(helm: Helm, values: dict[str, bool]) -> None:
    assert installed(helm, MUTATING, **values) == []


def test_it_is_left_out_where_only_managed_fields_outlive_an_operator(helm: Helm) -> None:
    alone = {"operator.options.leaderElect": False, "operator.replicas": 1}
    assert installed(helm, MUTATING, **alone) == []
    assert len(installed(helm, MUTATING, **alone, **{"operator.enabled": False})) == 2


def test_it_stays_and_is_annotated_as_the_other_policies_are(helm: Helm) -> None:
    keep, given = "helm.sh/resource-policy", {"policies.annotations": {"contact": "platform"}}
    for one in installed(helm, MUTATING, **given):
        noted = one["metadata"]["annotations"]
        assert (noted[keep], noted["contact"]) == ("keep", "platform")
    for one in installed(helm, MUTATING, **{"policies.keep": False}):
        assert keep not in one["metadata"]["annotations"]


def test_who_installs_is_told_why_jobs_have_managed_fields(helm: Helm) -> None:
    assert KEPT not in notes(helm, f"--values={scenario('namespaced')}")  # without policies
    assert KEPT not in notes(helm, "--set=policies.mutating=false")
    assert f"{KEPT} That is because" in notes(helm)
