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
from asyncjob.schema.laws.law import Law
from asyncjob.schema.policies.identity import IS_WORKER, OPERATES, POD, POD_UID
from asyncjob.schema.policies.policy import Policy, Target

_ANNOTATED: Final = f"object.metadata.?annotations[?'{POD_UID_ANNOTATION}'].orValue('')"
_OURS: Final = (
    f"object.metadata.name == '{OPERATOR_LEASE}'"
    f" || object.metadata.name.startsWith('{WORKER_LEASE_PREFIX}')"
)

_MINE: Final = Law(
    "worker-lease.own",
    f"The Lease {WORKER_LEASE_PREFIX}POD is written by that pod, with its UID in the annotation "
    f"{POD_UID_ANNOTATION}, or by who may `operate` on asyncjobs.",
    f"!variables.name.startsWith('{WORKER_LEASE_PREFIX}') || (variables.pod != ''"
    f" && variables.uid != '' && variables.name == '{WORKER_LEASE_PREFIX}' + variables.pod"
    f" && {_ANNOTATED} == variables.uid) || {OPERATES}",
    "'lease ' + variables.name + ' with pod UID ' + "
    f"{_ANNOTATED} + ' is not that of ' + (variables.pod == '' ? request.userInfo.username"
    " : 'pod ' + variables.pod + ' (' + variables.uid + ')')",
    forbids=True,
)
_ELECTION: Final = Law(
    "worker-lease.election",
    f"The Lease {OPERATOR_LEASE}, by which the operator elects its leader, is written only by who "
    "may `operate` on asyncjobs.",
    f"variables.name != '{OPERATOR_LEASE}' || {OPERATES}",
    forbids=True,
)
_NO_OTHER: Final = Law(
    "worker-lease.no-other",
    f"A ServiceAccount {WORKER_ACCOUNT} or {WORKER_ACCOUNT}-… writes no Lease but its worker's, "
    "unless it may `operate` on asyncjobs.",
    f"{_OURS} || !{IS_WORKER} || {OPERATES}",
    "'lease ' + variables.name + ' is not for workers, and ' + request.userInfo.username"
    " + ' is one'",
    forbids=True,
)

LEASES: Final = Policy(
    name=f"worker-lease.{GROUP}",
    title="Who may write the Leases of workers and operators.",
    targets=(Target("coordination.k8s.io", "v1", ("leases",)),),
    operations=("CREATE", "UPDATE"),
    conditions={
        "is-ours-or-a-worker-writes": f"{_OURS} || {IS_WORKER}",
    },
    variables={"name": "object.metadata.name", "pod": POD, "uid": POD_UID},
    laws=(_MINE, _ELECTION, _NO_OTHER),
)
