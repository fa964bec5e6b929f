"""Policies that change a job as it is created.

They save work, and nothing relies on them. They lie in a folder of their own, because one has to
ask for them: while an API server that has started has no schema for them yet, it creates no jobs.
One before Kubernetes 1.36 does not know their kind.
"""

from collections.abc import Mapping
from typing import Final

from asyncjob.json_types import Json
from asyncjob.names import GROUP, JOBS, SHARD_LABEL, VERSION
from asyncjob.rules.policy import ADMISSION_API_VERSION
from asyncjob.shards import SHARD_EXPRESSION

MUTATING: Final = "mutating"
"""Within the folder of the CRDs, so that `kubectl apply -f crds/` leaves it out."""


def mutation_manifests(
    name: str, title: str, conditions: Mapping[str, str], patch: str
) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return a policy and its binding. `patch` is CEL for a JSON patch of a new job."""
    metadata: Json = {
        "name": name,
        "annotations": {
            "helm.sh/resource-policy": "keep",
            "kubernetes.io/description": title,
        },
    }
    policy: dict[str, Json] = {
        "apiVersion": ADMISSION_API_VERSION,
        "kind": "MutatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            # An unchanged job is as good, so that no job is refused for this.
            "failurePolicy": "Ignore",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [GROUP],
                        "apiVersions": [VERSION],
                        "operations": ["CREATE"],
                        "resources": [JOBS],
                        "scope": "Namespaced",
                    }
                ]
            },
            "matchConditions": [
                {"name": condition, "expression": expression}
                for condition, expression in conditions.items()
            ],
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
        },
    }
    binding: dict[str, Json] = {
        "apiVersion": ADMISSION_API_VERSION,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": {"policyName": name},
    }
    return policy, binding


SHARD_POLICY: Final = f"shard.{GROUP}"
SHARD_TITLE: Final = "Jobs that are created without a shard are labelled with that of their name."

_KEY: Final = SHARD_LABEL.replace("/", "~1")
_SHARD_CONDITIONS: Final = {
    "has-a-name": "object.metadata.?name.orValue('') != ''",
    "has-no-shard": f"!('{SHARD_LABEL}' in object.metadata.?labels.orValue({{}}))",
}
SHARD_PATCH: Final = (
    f"has(object.metadata.labels) ? [JSONPatch{{op: 'add', path: '/metadata/labels/{_KEY}', "
    f"value: {SHARD_EXPRESSION}}}] : [JSONPatch{{op: 'add', path: '/metadata/labels', "
    f"value: {{'{SHARD_LABEL}': {SHARD_EXPRESSION}}}}}]"
)


def shard_manifests() -> tuple[dict[str, Json], dict[str, Json]]:
    """Return the policy that labels applied jobs as clients label those that they create.

    One that is yet to be named, by `generateName`, has no name to go by.
    """
    return mutation_manifests(SHARD_POLICY, SHARD_TITLE, _SHARD_CONDITIONS, SHARD_PATCH)
