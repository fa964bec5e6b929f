"""The one policy that changes what is written: it takes managedFields off jobs that nobody applies.

The API server keeps who wrote which field, compares the whole object for it at each write, and
stores it with the job. That serves those who apply, which few jobs are. A job that is created
without managedFields has none until somebody applies it.

The policy is a saving, and nothing relies on it. It lies in a folder of its own, because one has to
ask for it: while an API server that has started has no schema for it yet, it creates no jobs. One
before Kubernetes 1.36 does not know its kind.
"""

from typing import Final

from asyncjob.json_types import Json
from asyncjob.names import GROUP, JOBS, VERSION
from asyncjob.rules.policy import ADMISSION_API_VERSION

MANAGED_FIELDS_POLICY: Final = f"managed-fields.{GROUP}"
MANAGED_FIELDS_TITLE: Final = "Jobs that nobody applies are created without managedFields."
MUTATING: Final = "mutating"
"""Within the folder of the CRDs, so that `kubectl apply -f crds/` leaves it out."""

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Left by `kubectl apply` on the client's side. Who then goes over to the server's side keeps
what that made its own."""

_CONDITIONS: Final = {
    "has-managed-fields": "has(object.metadata.managedFields)",
    "nobody-applies": "object.metadata.managedFields.all(entry, entry.operation != 'Apply')"
    f" && !('{_LAST_APPLIED}' in object.metadata.?annotations.orValue({{}}))",
}
_REMOVAL: Final = "[JSONPatch{op: 'remove', path: '/metadata/managedFields'}]"


def managed_fields_manifests() -> tuple[dict[str, Json], dict[str, Json]]:
    """Return the policy and its binding."""
    metadata: Json = {
        "name": MANAGED_FIELDS_POLICY,
        "annotations": {
            "helm.sh/resource-policy": "keep",
            "kubernetes.io/description": MANAGED_FIELDS_TITLE,
        },
    }
    policy: dict[str, Json] = {
        "apiVersion": ADMISSION_API_VERSION,
        "kind": "MutatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            # A job with managedFields is as good, so that no job is refused for this.
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
                {"name": name, "expression": expression} for name, expression in _CONDITIONS.items()
            ],
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": _REMOVAL}}],
        },
    }
    binding: dict[str, Json] = {
        "apiVersion": ADMISSION_API_VERSION,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": {"policyName": MANAGED_FIELDS_POLICY},
    }
    return policy, binding
