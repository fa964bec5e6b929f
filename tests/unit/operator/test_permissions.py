"""What the operator asks permission for is what the chart grants."""

from collections.abc import Iterable
from pathlib import Path

import yaml

from asyncjob.names import OPERATOR_LEASE
from asyncjob_operator.core.permissions import (
    ARRAY_PERMISSIONS,
    CORE,
    RECOVERY,
    SCHEDULES,
    STALE_WORKERS,
    WORKERS,
    Permission,
    election,
)

ROLES = Path(__file__).parents[3] / "charts/asyncjob/files/rbac.yaml"


def granted(role: str) -> set[tuple[str, str, str, str]]:
    """Return verb, group, resource and name of the object for all that a role of ours allows."""
    documents = yaml.safe_load_all(ROLES.read_text(encoding="utf-8"))
    [found] = [one for one in documents if one["metadata"]["name"] == role]
    return {
        (verb, group, resource, name)
        for rule in found["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
    }


def asked_for(permissions: Iterable[Permission]) -> set[tuple[str, str, str, str]]:
    return {
        (one.verb, one.group, "/".join(filter(None, (one.resource, one.subresource))), one.name)
        for one in permissions
    }


def test_the_operator_asks_for_what_its_role_grants() -> None:
    everything = (*CORE, *SCHEDULES, *ARRAY_PERMISSIONS, *RECOVERY, *WORKERS, *STALE_WORKERS)
    assert asked_for(everything) == granted("asyncjob-operator")


def test_the_election_asks_for_what_its_role_grants_and_what_the_policy_demands() -> None:
    of_the_lease = {one for one in election(OPERATOR_LEASE) if one.resource == "leases"}
    assert asked_for(of_the_lease) == granted("asyncjob-operator-election")
    assert {one.verb for one in election(OPERATOR_LEASE)} == {"get", "patch", "create", "operate"}


def test_a_permission_is_named_as_people_name_it() -> None:
    titles = {one.title for one in (*CORE, *RECOVERY)}
    assert {"patch asyncjobs.asyncjob.dev/status", "create events", "get pods"} <= titles
