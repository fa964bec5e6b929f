"""The policy that takes managedFields off jobs that nobody applies.

The API server keeps who wrote which field, compares the whole object for it at each write, and
stores it with the job. That serves those who apply, which few jobs are. A job that is created
without managedFields has none until somebody applies it.

The policy is a saving, and nothing relies on it.
"""

from typing import Final

from asyncjob.json_types import Json
from asyncjob.names import GROUP
from asyncjob.rules.mutation import mutation_manifests

MANAGED_FIELDS_POLICY: Final = f"managed-fields.{GROUP}"
MANAGED_FIELDS_TITLE: Final = "Jobs that nobody applies are created without managedFields."

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
    return mutation_manifests(MANAGED_FIELDS_POLICY, MANAGED_FIELDS_TITLE, _CONDITIONS, _REMOVAL)
