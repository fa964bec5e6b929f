"""Who may write the Leases by which workers announce themselves and operators elect a leader.

RBAC cannot name them: it knows no prefixes, and nothing at all for `create`.
"""

from typing import Final

from asyncjob.names import GROUP, OPERATOR_LEASE, POD_UID_ANNOTATION, WORKER_LEASE_PREFIX
from asyncjob.schema.laws.law import Law
from asyncjob.schema.policies.identity import OPERATES, POD, POD_UID
from asyncjob.schema.policies.policy import Policy, Target

_LEASE: Final = "(request.operation == 'DELETE' ? oldObject : object)"
_ANNOTATED: Final = f"variables.lease.metadata.?annotations[?'{POD_UID_ANNOTATION}'].orValue('')"

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

LEASES: Final = Policy(
    name=f"worker-lease.{GROUP}",
    title="Who may write the Leases of workers and operators.",
    targets=(Target("coordination.k8s.io", "v1", ("leases",)),),
    operations=("CREATE", "UPDATE", "DELETE"),
    conditions={
        "is-ours": f"{_LEASE}.metadata.name == '{OPERATOR_LEASE}'"
        f" || {_LEASE}.metadata.name.startsWith('{WORKER_LEASE_PREFIX}')",
    },
    variables={"lease": _LEASE, "name": f"{_LEASE}.metadata.name", "pod": POD, "uid": POD_UID},
    laws=(_MINE, _ELECTION),
)
