"""Whether the policies that come with the CRDs are in force."""

from typing import Final

from asyncjob.errors import ForbiddenError
from asyncjob.json_types import JsonObject, as_object, child, items, text
from asyncjob.kube import KubeSession
from asyncjob.names import GROUP

MISSING_POLICY_RISKS: Final = {
    f"lifecycle.{GROUP}": "a job's status could change in ways the lifecycle forbids",
    f"ownership.{GROUP}": "any worker could write any job",
    f"spec.{GROUP}": "what a job is to do could change after it was created",
    f"creation.{GROUP}": "a job could be created with a redrive or rerun of what it never did",
    f"removal.{GROUP}": "who may patch a job could have it deleted, or keep it for ever",
    f"settings.{GROUP}": "who may patch a queue or schedule could have finished jobs deleted by it",
    f"payload-source.{GROUP}": "a job could read Secrets that its author may not",
    f"worker-lease.{GROUP}": "any worker could write the Leases of others and of the election",
}
"""What it means that a policy is missing."""

POLICIES_NOT_READABLE: Final = (
    "cannot see whether the policies are in force: no permission to list "
    "validatingadmissionpolicies and their bindings; grant it to the operator's service account"
)

_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"


async def find_missing_policies(session: KubeSession) -> list[str]:
    """Return a line for each policy that is missing or refuses nothing, or that none can be seen.

    In force is what exists and is bound to deny.
    """
    try:
        policies = await session.get(f"{_ADMISSION}/validatingadmissionpolicies")
        bindings = await session.get(f"{_ADMISSION}/validatingadmissionpolicybindings")
    except ForbiddenError:
        return [POLICIES_NOT_READABLE]
    found = {text(child(as_object(item), "metadata"), "name") for item in items(policies, "items")}
    in_force = found & _bound_to_deny(bindings)
    return [
        f"the policy {name} is not in force: {meaning}; kubectl apply -f crds/"
        for name, meaning in MISSING_POLICY_RISKS.items()
        if name not in in_force
    ]


def _bound_to_deny(bindings: JsonObject) -> set[str]:
    specs = [child(as_object(item), "spec") for item in items(bindings, "items")]
    return {text(one, "policyName") for one in specs if "Deny" in items(one, "validationActions")}
