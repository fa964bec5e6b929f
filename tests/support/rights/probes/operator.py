"""The operator's rights, by what the operator's own parts do with them."""

from collections.abc import Mapping
from typing import Final

from asyncjob.names import OPERATE_VERB, OPERATOR_LEASE
from support.rights.model import Right
from support.rights.probes import following, operating
from support.rights.probes.probe import ARRAYS, CRONS, JOBS, QUEUES, Probe, on_leases, ours

_CANCELS: Final = Probe("cancel a job on request", operating.cancels)
_ADMITS: Final = Probe(
    "admit a job to a queue with a limit, whoever else has changed the queue", operating.admits
)
_SCHEDULES: Final = Probe("see a cron job and create the job of its trigger", following.triggers)
_ARRAYS: Final = Probe("cut an array into chunks", following.runs_an_array)
_PODS: Final = Probe("follow worker pods", following.follows("pods"))
_LEASES: Final = Probe("follow workers' Leases", following.follows("leases"))
_POLICIES: Final = Probe("say which policies are not in force", operating.sees_policies)
_ELECTION: Final = Probe("be elected, and stay so", operating.is_elected)

MAIN: Final[Mapping[Right, Probe]] = {
    **ours(JOBS, f"get {OPERATE_VERB}", _CANCELS),
    **ours(f"{JOBS}/status", "patch", _CANCELS),
    **ours(JOBS, "list", Probe("list all jobs at its start", operating.lists_jobs)),
    **ours(JOBS, "watch", Probe("see a job that was just created", following.sees_new_jobs)),
    **ours(JOBS, "create", Probe("rerun a job", operating.reruns)),
    **ours(JOBS, "patch", Probe("hand a cancel on to children", operating.cascades)),
    **ours(JOBS, "delete", Probe("remove a job that retention does not keep", operating.removes)),
    **ours(QUEUES, "get", _ADMITS),
    **ours(f"{QUEUES}/status", "patch", _ADMITS),
    **ours(QUEUES, "list watch", Probe("follow queues", following.sees_queues)),
    **ours(CRONS, "get list watch", _SCHEDULES),
    **ours(f"{CRONS}/status", "patch", _SCHEDULES),
    **ours(ARRAYS, "get list watch", _ARRAYS),
    **ours(f"{ARRAYS}/status", "patch", _ARRAYS),
    **ours(ARRAYS, "patch", Probe("hand a cancel on to an array", operating.cancels_an_array)),
    **ours(ARRAYS, "delete", Probe("remove an array after its time", following.removes_an_array)),
    **on_leases("get", Probe("confirm that a worker was replaced", operating.confirms_worker)),
    **on_leases("list watch", _LEASES),
    **on_leases(
        "delete", Probe("remove a silent worker's Lease", operating.removes_a_silent_workers_lease)
    ),
    Right("", "pods", "get"): Probe("confirm that a pod is gone", operating.confirms_pod),
    Right("", "pods", "list"): _PODS,
    Right("", "pods", "watch"): _PODS,
    Right("", "events", "create"): Probe("tell people", operating.tells),
}

INSTALL: Final[Mapping[Right, Probe]] = {
    Right("admissionregistration.k8s.io", resource, "list"): _POLICIES
    for resource in ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
} | {
    Right("admissionregistration.k8s.io", "mutatingadmissionpolicybindings", "list"): Probe(
        "warn where managedFields are dropped", operating.sees_managed_fields
    )
}

ELECTION: Final[Mapping[Right, Probe]] = {
    **on_leases("create", _ELECTION),
    **on_leases("get patch", _ELECTION, OPERATOR_LEASE),
    **ours(JOBS, OPERATE_VERB, _ELECTION),
}

PROBES: Final = {
    ("asyncjob-operator", "asyncjob-operator"): MAIN,
    ("asyncjob-operator", "asyncjob-operator-election"): ELECTION,
    ("asyncjob-operator", "jobs-asyncjob-operator-install"): INSTALL,
}
