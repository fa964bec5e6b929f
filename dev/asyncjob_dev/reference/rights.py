"""The tables of rights: from dev/manifests/rbac.yaml and the comments in it, role by role."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from asyncjob_dev.reference.blocks import table

ROLES = Path(__file__).resolve().parents[2] / "manifests/rbac.yaml"
Rule = Mapping[str, Any]


def role_rights() -> str:
    """Return a table for each role."""
    documents = ROLES.read_text(encoding="utf-8").split("\n---\n")
    return "\n\n".join(map(role_section, documents))


def role_section(document: str) -> str:
    """Return the heading and the table of one role."""
    role = yaml.safe_load(document)
    reasons = _reasons(document.split("\nrules:\n")[1].splitlines())
    rows = [
        (_verbs(rule), _resources(rule), reason)
        for rule, reason in zip(role["rules"], reasons, strict=True)
    ]
    heading = f"#### `{role['metadata']['name']}`"
    return f"{heading}\n\n{table(('May', 'On', 'In order to'), rows)}"


def _reasons(lines: Sequence[str]) -> Iterator[str]:
    """Yield what is said above each rule."""
    said: list[str] = []
    for line in lines:
        if line.startswith("# "):
            said.append(line.removeprefix("# "))
        elif line.startswith("- "):
            yield " ".join(said)
            said = []


def _verbs(rule: Rule) -> str:
    return ", ".join(rule["verbs"])


def _resources(rule: Rule) -> str:
    groups = ", ".join(group for group in rule["apiGroups"] if group)
    names = ", ".join(f"`{resource}`" for resource in rule["resources"])
    only = "".join(f", only `{name}`" for name in rule.get("resourceNames", ()))
    return f"{names}{f' of {groups}' if groups else ''}{only}"
