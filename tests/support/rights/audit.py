"""What the API server's own log says about who was refused what, and who was let do what."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from support.rights.model import Right

DECISION: Final = "authorization.k8s.io/decision"
SEEN: Final = ("jobs", "at-work")
"""Namespaces whose accounts are looked at."""

POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "userGroups": [f"system:serviceaccounts:{one}" for one in SEEN]},
        {"level": "None"},
    ],
}


@dataclass(frozen=True)
class Audit:
    """The log of one API server, which writes a line before it ends an answer."""

    folder: Path

    @property
    def flags(self) -> tuple[str, ...]:
        """Return what the API server is started with."""
        (self.folder / "policy.yaml").write_text(yaml.safe_dump(POLICY))
        return (
            f"--audit-policy-file={self.folder / 'policy.yaml'}",
            f"--audit-log-path={self._log}",
        )

    def rights(self, username: str, decision: str) -> set[Right]:
        """Return the rights to what an account has asked for, by what was decided."""
        # The last line may be half written: others are at work on the server all the while.
        whole, _, _ = self._log.read_text().rpartition("\n")
        lines = map(json.loads, whole.splitlines())
        return {
            _right(line["objectRef"], line["verb"])
            for line in lines
            if line["user"]["username"] == username
            and line.get("annotations", {}).get(DECISION) == decision
            and "objectRef" in line
        }

    @property
    def _log(self) -> Path:
        return self.folder / "audit.log"


def _right(ref: dict[str, Any], verb: str) -> Right:
    resource = "/".join(filter(None, (ref["resource"], ref.get("subresource"))))
    return Right(ref.get("apiGroup", ""), resource, verb)
