"""Rights as the chart's roles give them. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from support.cluster.charts import Rendered

Rule = Mapping[str, Any]
USERS = "asyncjob-job-"
"""How the roles of users begin; nobody is bound to them by the chart."""


@dataclass(frozen=True, order=True)
class Right:
    """One verb on one resource; on one object of it only, where it has a name."""

    group: str
    resource: str
    verb: str
    name: str = ""

    def __str__(self) -> str:
        """Return it as people write it."""
        named = f"/{self.name}" if self.name else ""
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}{named}"


@dataclass(frozen=True)
class Grant:
    """Rules of one role, and where they hold: in a namespace or, without one, in the cluster."""

    role: str
    namespace: str
    rules: Sequence[Rule]


@dataclass(frozen=True)
class Part:
    """Who asks the API server, under which account, with all that was granted."""

    account: str
    namespace: str
    grants: tuple[Grant, ...]


def rights_of(rules: Sequence[Rule]) -> Iterator[Right]:
    """Yield each right, as often as it is given."""
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    for name in rule.get("resourceNames", [""]):
                        yield Right(group, resource, verb, name)


def without(rules: Sequence[Rule], gone: Right) -> list[dict[str, Any]]:
    """Return rules that give all rights but one, a rule for each."""
    return [_rule(right) for right in rights_of(rules) if right != gone]


def _rule(right: Right) -> dict[str, Any]:
    rule = {"apiGroups": [right.group], "resources": [right.resource], "verbs": [right.verb]}
    return {**rule, "resourceNames": [right.name]} if right.name else rule


def parts_of(rendered: Rendered, namespace: str) -> list[Part]:
    """Return every account that the chart gives rights, and users with each of its roles.

    Users have their role in `namespace`.
    """
    bound: dict[tuple[str, str], list[Grant]] = {}
    for subject, grant in _bindings(rendered):
        bound.setdefault(subject, []).append(grant)
    users = [
        Part(role["metadata"]["name"].removeprefix("asyncjob-"), namespace, (grant,))
        for role in rendered.of("ClusterRole")
        if role["metadata"]["name"].startswith(USERS)
        for grant in (Grant(role["metadata"]["name"], namespace, role["rules"]),)
    ]
    parts = [Part(name, home, tuple(grants)) for (home, name), grants in bound.items()]
    return [*parts, *users]


def _bindings(rendered: Rendered) -> Iterator[tuple[tuple[str, str], Grant]]:
    rules = {
        (role["kind"], role["metadata"].get("namespace", ""), role["metadata"]["name"]): role
        for role in (*rendered.of("Role"), *rendered.of("ClusterRole"))
    }
    for binding in (*rendered.of("RoleBinding"), *rendered.of("ClusterRoleBinding")):
        where, ref = binding["metadata"].get("namespace", ""), binding["roleRef"]
        role = rules[ref["kind"], where if ref["kind"] == "Role" else "", ref["name"]]
        for subject in binding["subjects"]:
            grant = Grant(ref["name"], where, role["rules"])
            yield (subject["namespace"], subject["name"]), grant
