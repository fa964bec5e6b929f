"""Who may write the Leases by which workers announce themselves and operators elect a leader.

RBAC cannot name them: it knows no prefixes, and nothing at all for `create`. So it lets a worker
write any Lease of its namespace, and the leader Lease of some other controller with it. Workers are
told from others by the name of their ServiceAccount: this is asked for every Lease of the cluster,
kubelets' and other leaders' included, who must not come to depend on a call to the authorizer.

Deleting is left to RBAC: workers have no such right, and who has it may use it. The namespace
controller and the garbage collector have it everywhere and may not `operate`; a Lease that they are
refused keeps its namespace from ever going away.
"""

from typing import Final

from asyncjob.names import (
    GROUP,
    OPERATOR_LEASE,
    POD_UID_ANNOTATION,
    WORKER_ACCOUNT,
    WORKER_LEASE_PREFIX,
)
from asyncjob.schema.laws.law import Rule
from asyncjob.schema.policies.identity import IS_WORKER, MAY_OPERATE, REQUEST_POD, REQUEST_POD_UID
from asyncjob.schema.policies.policy import AdmissionPolicy, PolicyTarget

_LEASE_POD_UID: Final = f"object.metadata.?annotations[?'{POD_UID_ANNOTATION}'].orValue('')"
_IS_OUR_LEASE: Final = (
    f"object.metadata.name == '{OPERATOR_LEASE}'"
    f" || object.metadata.name.startsWith('{WORKER_LEASE_PREFIX}')"
)

_WORKER_LEASE_OWN: Final = Rule(
    "worker-lease.own",
    f"The Lease {WORKER_LEASE_PREFIX}POD is written by that pod, with its UID in the annotation "
    f"{POD_UID_ANNOTATION}, or by who may `operate` on asyncjobs.",
    f"!variables.name.startsWith('{WORKER_LEASE_PREFIX}') || (variables.pod != ''"
    f" && variables.uid != '' && variables.name == '{WORKER_LEASE_PREFIX}' + variables.pod"
    f" && {_LEASE_POD_UID} == variables.uid) || {MAY_OPERATE}",
    "'lease ' + variables.name + ' with pod UID ' + "
    f"{_LEASE_POD_UID} + ' is not that of ' + (variables.pod == '' ? request.userInfo.username"
    " : 'pod ' + variables.pod + ' (' + variables.uid + ')')",
    is_forbidden=True,
)
_WORKER_LEASE_ELECTION: Final = Rule(
    "worker-lease.election",
    f"The Lease {OPERATOR_LEASE}, by which the operator elects its leader, is written only by who "
    "may `operate` on asyncjobs.",
    f"variables.name != '{OPERATOR_LEASE}' || {MAY_OPERATE}",
    is_forbidden=True,
)
_WORKER_LEASE_NO_OTHER: Final = Rule(
    "worker-lease.no-other",
    f"A ServiceAccount {WORKER_ACCOUNT} or {WORKER_ACCOUNT}-… writes no Lease but its worker's, "
    "unless it may `operate` on asyncjobs.",
    f"{_IS_OUR_LEASE} || !{IS_WORKER} || {MAY_OPERATE}",
    "'lease ' + variables.name + ' is not for workers, and ' + request.userInfo.username"
    " + ' is one'",
    is_forbidden=True,
)

WORKER_LEASE_POLICY: Final = AdmissionPolicy(
    name=f"worker-lease.{GROUP}",
    title="Who may write the Leases of workers and operators.",
    targets=(PolicyTarget("coordination.k8s.io", "v1", ("leases",)),),
    operations=("CREATE", "UPDATE"),
    conditions={
        "is-ours-or-a-worker-writes": f"{_IS_OUR_LEASE} || {IS_WORKER}",
    },
    variables={"name": "object.metadata.name", "pod": REQUEST_POD, "uid": REQUEST_POD_UID},
    rules=(_WORKER_LEASE_OWN, _WORKER_LEASE_ELECTION, _WORKER_LEASE_NO_OTHER),
)
