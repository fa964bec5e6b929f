"""The policies that change jobs: only if asked for and the API server knows their kind."""

from typing import Any

from support.cluster.charts import MUTATING, NAMESPACE, Helm, Object, scenario

WITHOUT_EFFECT = "policies.mutating is without effect"
ASKED_FOR = {"policies.mutating": True}


def installed(helm: Helm, *api_versions: str, **values: Any) -> list[Object]:
    """Return the policies and their bindings, as they are rendered."""
    rendered = helm.render(values=values, api_versions=api_versions)
    return [*rendered.of("MutatingAdmissionPolicy"), *rendered.of("MutatingAdmissionPolicyBinding")]


def notes(helm: Helm, *flags: str) -> str:
    """Return what is said after an install."""
    where = ("mine", str(helm.chart), f"--namespace={NAMESPACE}")
    said = helm.run("install", "--dry-run=client", *where, *flags)
    return " ".join(said.partition("NOTES:")[2].split())


def test_it_is_installed_where_it_is_asked_for_and_the_api_server_knows_its_kind(
    helm: Helm,
) -> None:
    found = installed(helm, MUTATING, **ASKED_FOR)
    names = ["managed-fields.asyncjob.dev", "shard.asyncjob.dev"]
    assert [one["metadata"]["name"] for one in found] == names * 2
    assert [one["spec"] for one in found[2:]] == [{"policyName": name} for name in names]
    assert installed(helm, MUTATING) == []
    assert installed(helm, **ASKED_FOR) == []


def test_without_policies_it_is_left_out(helm: Helm) -> None:
    assert installed(helm, MUTATING, **ASKED_FOR, **{"policies.install": False}) == []


def test_it_is_left_out_where_only_managed_fields_outlive_an_operator(helm: Helm) -> None:
    alone = {**ASKED_FOR, "operator.options.leaderElect": False, "operator.replicas": 1}
    assert installed(helm, MUTATING, **alone) == []
    assert len(installed(helm, MUTATING, **alone, **{"operator.enabled": False})) == 4


def test_it_is_annotated_as_the_other_policies_are_but_does_not_stay(helm: Helm) -> None:
    given = {"policies.annotations": {"contact": "platform"}, "policies.keep": True}
    for one in installed(helm, MUTATING, **ASKED_FOR, **given):
        noted = one["metadata"]["annotations"]
        assert noted["contact"] == "platform"
        assert "helm.sh/resource-policy" not in noted


def test_who_asks_for_what_cannot_be_had_is_told_why(helm: Helm) -> None:
    asked = "--set=policies.mutating=true"
    assert f"{WITHOUT_EFFECT}: the API server does not serve" in notes(helm, asked)
    assert WITHOUT_EFFECT not in notes(helm)
    # Nor without policies, where it is not this release that could bring it.
    assert WITHOUT_EFFECT not in notes(helm, asked, f"--values={scenario('namespaced')}")
