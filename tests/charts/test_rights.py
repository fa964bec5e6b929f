"""Who may do what: rules of one source, each with a reason, and none beyond what is asked for."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import yaml

from asyncjob_operator.core import permissions
from support.cluster.charts import ROOT, SCENARIOS, Helm, Object, Rendered, scenario
from support.cluster.releases import RELEASES, Release
from support.rights import rights_of

CLUSTER_SCOPED = {
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "FlowSchema",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "PriorityLevelConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}
OPERATOR = "asyncjob-operator"
NAMES = [path.stem for path in SCENARIOS]
AGGREGATED = "rbac.authorization.k8s.io/aggregate-to-"


def known_rules() -> list[Any]:
    roles = yaml.safe_load_all((ROOT / "dev/manifests/rbac.yaml").read_text())
    return [rule for role in roles for rule in role["rules"]]


def roles(rendered: Rendered) -> list[Object]:
    return [*rendered.of("Role"), *rendered.of("ClusterRole")]


def grants(rendered: Rendered, account: str) -> Iterator[dict[str, Any]]:
    """Return the rules that a ServiceAccount has, wherever."""
    named = {(role["kind"], role["metadata"]["name"]): role["rules"] for role in roles(rendered)}
    for binding in (*rendered.of("RoleBinding"), *rendered.of("ClusterRoleBinding")):
        if any(subject["name"] == account for subject in binding["subjects"]):
            yield from named[binding["roleRef"]["kind"], binding["roleRef"]["name"]]


@pytest.mark.parametrize("name", NAMES)
def test_no_rule_has_a_wildcard(rendered: dict[str, Rendered], name: str) -> None:
    for role in roles(rendered[name]):
        for rule in role["rules"]:
            assert "*" not in (*rule["verbs"], *rule["resources"], *rule["apiGroups"])


@pytest.mark.parametrize("name", NAMES)
def test_rules_are_those_of_the_development_environment(
    rendered: dict[str, Rendered], name: str
) -> None:
    """But for names of objects, the election elsewhere, and the test's own."""
    known = [unnamed(rule) for rule in known_rules()]
    own = ("-test",)
    for role in roles(rendered[name]):
        if not role["metadata"]["name"].endswith(own):
            assert all(unnamed(rule) in known for rule in role["rules"])


def unnamed(rule: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in rule.items() if key != "resourceNames"}


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_has_its_reason_above_it(rendered: dict[str, Rendered], name: str) -> None:
    rules = 0
    for text in rendered[name].text.split("\n---\n"):
        if not re.search(r"^kind: (Cluster)?Role$", text, re.MULTILINE):
            continue
        lines = text.split("\nrules:\n")[1].splitlines()
        for above, line in zip(["", *lines], lines, strict=False):
            if line.startswith("- apiGroups:"):
                rules += 1
                assert re.fullmatch(r"# .+\.", above), line

    assert rules >= 8 or name == "existing-service-accounts"


def test_the_operator_may_do_all_it_asks_for(rendered: dict[str, Rendered]) -> None:
    """Its preflight would complain about each permission that is missing."""
    asked = [
        item
        for value in vars(permissions).values()
        for item in (value if isinstance(value, tuple) else (value,))
        if isinstance(item, permissions.Permission)
    ]
    has = list(grants(rendered["default"], "asyncjob-operator"))

    def granted(wanted: permissions.Permission) -> bool:
        resource = "/".join(filter(None, (wanted.resource, wanted.subresource)))
        return any(
            wanted.verb in rule["verbs"]
            and resource in rule["resources"]
            and wanted.group in rule["apiGroups"]
            for rule in has
        )

    assert len(asked) > 15
    assert [item.title for item in asked if not granted(item)] == []


@pytest.mark.parametrize("name", NAMES)
def test_only_the_operator_has_the_verb_that_opens_every_job(
    rendered: dict[str, Rendered], name: str
) -> None:
    for role in roles(rendered[name]):
        part = role["metadata"]["labels"]["app.kubernetes.io/component"]
        assert part == "operator" or all("operate" not in rule["verbs"] for rule in role["rules"])


def test_secrets_are_read_only_where_payloads_come_from_them(helm: Helm) -> None:
    def sources(values: dict[str, Any]) -> list[dict[str, Any]]:
        rules = grants(helm.render(values=values), "asyncjob-worker-default")
        return [rule for rule in rules if {"secrets", "configmaps"} & {*rule["resources"]}]

    get = {"apiGroups": [""], "verbs": ["get"]}
    at = "workers.default.payloadSources"

    assert sources({}) == []
    assert sources({at: {"secrets": ["a", "b"]}}) == [
        {**get, "resources": ["secrets"], "resourceNames": ["a", "b"]}
    ]
    assert sources({at: {"configMaps": ["*"]}}) == [{**get, "resources": ["configmaps"]}]
    for rendered in (helm.render(), helm.render(scenario("cluster-wide"))):
        assert all(
            "secrets" not in rule["resources"] for role in roles(rendered) for rule in role["rules"]
        )


def sources_in(values: dict[str, Any]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield what the workers of a scenario may take payloads from, by the component."""
    defaults = values.get("workerDefaults", {})
    for name, own in {"default": {}, **values.get("workers", {})}.items():
        merged = {**defaults.get("payloadSources", {}), **(own or {}).get("payloadSources", {})}
        for key, names in merged.items() if own is not None else ():
            if names:
                yield f"worker-{name}", key.lower(), tuple(names)


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_gives_secrets_to_workers_with_payload_sources_and_to_nobody_else(
    rendered: dict[str, Rendered], name: str
) -> None:
    values = yaml.safe_load(scenario(name).read_text())
    given = {
        (role["metadata"]["labels"]["app.kubernetes.io/component"], resource, names)
        for role in roles(rendered[name])
        for rule in role["rules"]
        for resource in {"secrets", "configmaps"} & {*rule["resources"]}
        for names in (tuple(rule.get("resourceNames", ["*"])),)
    }

    assert given == set(sources_in(values))
    assert bool(given) == (name in {"everything", "multi-tenant"})


def test_children_are_submitted_only_by_workers_that_may(helm: Helm) -> None:
    create = {"apiGroups": ["asyncjob.dev"], "resources": ["asyncjobs"], "verbs": ["create"]}
    values = {"workers.default": {}, "workers.tree": {"children": True}}
    rendered = helm.render(values=values)

    assert create not in grants(rendered, "asyncjob-worker-default")
    assert create in grants(rendered, "asyncjob-worker-tree")


def test_a_namespaced_release_has_no_object_outside_its_namespaces(
    rendered: dict[str, Rendered],
) -> None:
    objects = rendered["namespaced"].objects

    assert {item["kind"] for item in objects} & CLUSTER_SCOPED == set()
    assert {item["metadata"]["namespace"] for item in objects} == {"jobs", "team-a", "team-b"}


def test_a_release_may_hold_only_what_belongs_to_the_cluster(helm: Helm) -> None:
    """As docs/how-to/gitops.md has it, with releases of teams beside it."""
    parts = ("operator.enabled", "gateway.enabled", "test.enabled", "workerDefaults.enabled")
    objects = helm.render(values=dict.fromkeys(parts, False)).objects

    assert {item["kind"] for item in objects} == {
        "ClusterRole",
        "CustomResourceDefinition",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }


def test_rights_end_where_the_scope_ends(rendered: dict[str, Rendered]) -> None:
    """In `namespaced` the operator has a role in each namespace and the election's at home."""
    named = {
        (item["metadata"]["namespace"], item["metadata"]["name"])
        for item in rendered["namespaced"].of("RoleBinding")
        if item["subjects"][0]["name"] == "asyncjob-operator"
    }
    wide = [
        item["roleRef"]["name"]
        for item in rendered["cluster-wide"].of("ClusterRoleBinding")
        if item["subjects"][0]["name"] == "asyncjob-operator"
    ]

    home = {
        item["metadata"]["name"]
        for item in rendered["default"].of("RoleBinding")
        if item["subjects"][0]["name"] == "asyncjob-operator"
    }

    assert home == {"asyncjob-operator", "asyncjob-operator-election"}
    assert named == {
        ("team-a", "asyncjob-operator"),
        ("team-b", "asyncjob-operator"),
        ("jobs", "asyncjob-operator-election"),
    }
    assert sorted(wide) == ["asyncjob-operator", "jobs-asyncjob-operator-install"]


@pytest.mark.parametrize("name", ["default", "cluster-wide", "everything"])
def test_the_operator_writes_one_lease_by_name_and_creates_them_in_one_namespace(
    rendered: dict[str, Rendered], name: str
) -> None:
    """Cluster-wide it could otherwise hold the election of any other controller."""
    where = {"everything": ("elections", "jobs-operator-election", "jobs")}
    namespace, role, lease = where.get(name, ("jobs", f"{OPERATOR}-election", OPERATOR))
    writing = [
        (one["metadata"].get("namespace"), one["metadata"]["name"], rule)
        for one in roles(rendered[name])
        if one["metadata"]["labels"]["app.kubernetes.io/component"] == "operator"
        for rule in one["rules"]
        if "leases" in rule["resources"] and {"create", "patch", "update"} & {*rule["verbs"]}
    ]
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}

    assert writing == [
        (namespace, role, {**leases, "verbs": ["create"]}),
        (namespace, role, {**leases, "verbs": ["get", "patch"], "resourceNames": [lease]}),
    ]


def test_existing_accounts_are_used_and_get_no_rights_from_here(
    rendered: dict[str, Rendered],
) -> None:
    found = rendered["existing-service-accounts"]
    accounts = {pod["spec"]["serviceAccountName"] for pod in found.pods().values()}

    assert accounts == {"jobs-operator", "jobs-gateway", "asyncjob-worker", "asyncjob-test"}
    assert [item["metadata"]["name"] for item in found.of("ServiceAccount")] == ["asyncjob-test"]
    assert [*found.of("RoleBinding"), *found.of("ClusterRoleBinding")] == []


def test_tenants_have_their_roles_in_their_own_namespace_only(
    rendered: dict[str, Rendered],
) -> None:
    held = {
        (item["metadata"]["namespace"], item["roleRef"]["name"], item["subjects"][0]["name"])
        for item in rendered["multi-tenant"].of("RoleBinding")
        if item["metadata"]["labels"]["app.kubernetes.io/component"] == "user-roles"
    }

    assert held == {
        ("team-a", "asyncjob-job-admin", "team-a-leads"),
        ("team-a", "asyncjob-job-deleter", "archivist"),
        ("team-a", "asyncjob-job-signaller", "approver"),
        ("team-a", "asyncjob-job-submitter", "team-a"),
        ("team-b", "asyncjob-job-submitter", "shop"),
        ("team-b", "asyncjob-job-viewer", "auditor"),
    }


def test_user_roles_are_part_of_view_edit_and_admin_if_asked(helm: Helm) -> None:
    def labels(*, aggregate: bool) -> dict[str, set[str]]:
        found = helm.render(values={"userRoles.aggregate": aggregate}).of("ClusterRole")
        return {
            role["metadata"]["name"]: {
                key.rpartition("-")[2] for key in role["metadata"]["labels"] if "aggregate" in key
            }
            for role in found
            if "-job-" in role["metadata"]["name"]
        }

    named = ("viewer", "view"), ("submitter", "edit"), ("admin", "admin"), ("deleter", "admin")

    apart: dict[str, set[str]] = {"asyncjob-job-signaller": set()}  # who approves is named

    assert labels(aggregate=True) == apart | {f"asyncjob-job-{one}": {part} for one, part in named}
    assert labels(aggregate=False) == apart | {f"asyncjob-job-{one}": set() for one, _ in named}


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)
def test_who_deletes_by_a_role_of_kubernetes_own_still_does_after_an_upgrade(
    helm: Helm, release: Release
) -> None:
    """However the chart divides the right among its roles of users; new kinds go with the old."""
    before = deletions(replace(helm, chart=release.chart).render())
    after = deletions(helm.render())

    assert before <= after
    assert {part for part, _ in after} == {"admin"}


def deletions(rendered: Rendered) -> set[tuple[str, str]]:
    """Return what Kubernetes' own roles delete by those of the chart: their names and the kinds."""
    return {
        (label.removeprefix(AGGREGATED), right.resource)
        for role in rendered.of("ClusterRole")
        for label in role["metadata"]["labels"]
        if label.startswith(AGGREGATED)
        for right in rights_of(role["rules"])
        if right.verb == "delete"
    }


@pytest.mark.parametrize("name", NAMES)
def test_jobs_and_queues_are_deleted_by_the_operator_and_by_one_role_of_users(
    rendered: dict[str, Rendered], name: str
) -> None:
    deleting = {
        (role["metadata"]["labels"]["app.kubernetes.io/component"], role["metadata"]["name"])
        for role in roles(rendered[name])
        for right in rights_of(role["rules"])
        if right.verb.startswith("delete") and right.resource in {"asyncjobs", "asyncqueues"}
    }

    assert {part for part, _ in deleting} <= {"operator", "user-roles"}
    assert all(role.endswith("-job-deleter") for part, role in deleting if part == "user-roles")
    assert bool(deleting) or name == "existing-service-accounts"
