"""The rights of people and of callers of the gateway, and those of the chart's own test."""

from collections.abc import Mapping
from typing import Final

from asyncjob.names import CONTROL_VERB, READ_PAYLOAD_VERB, SIGNAL_VERB
from support.rights.model import Right
from support.rights.preparation import create_array, create_cron_job, create_job, create_queue
from support.rights.probes import asking, people
from support.rights.probes.asking import asks
from support.rights.probes.probe import ARRAYS, CRONS, JOBS, QUEUES, Probe, on_leases, ours

_API: Final = "/api/v1"
_JOB: Final = f"{_API}/jobs/{{name}}"
_ARRAY: Final = f"{_API}/arrays/{{name}}"

_READS: Final[Mapping[Right, Probe]] = {
    **ours(JOBS, "get", asks("read a job", "GET", _JOB, prepare=create_job)),
    **ours(JOBS, "list", asks("list jobs", "GET", f"{_API}/jobs")),
    **ours(JOBS, "watch", Probe("follow jobs", asking.follows, direct=False)),
}
_READS_ARRAYS: Final[Mapping[Right, Probe]] = {
    **ours(
        ARRAYS, "get", asks("see an array", "GET", f"{_ARRAY}/failed-items", prepare=create_array)
    ),
    **ours(ARRAYS, "list", asks("list arrays", "GET", f"{_API}/arrays")),
    **ours(ARRAYS, "watch", Probe("kubectl get aa --watch", people.watches("aa", create_array))),
}
_SUBMITS_ARRAYS: Final = asks(
    "submit an array", "POST", f"{_API}/arrays", {"type": "echo", "items": {"count": 1}}
)
_SUBMITS: Final = asks("submit a job", "POST", f"{_API}/jobs", {"type": "echo"})
_SEES: Final[Mapping[Right, Probe]] = {
    **_READS,
    **ours(
        QUEUES, "get", asks("see a queue", "GET", f"{_API}/queues/{{name}}", prepare=create_queue)
    ),
    **ours(QUEUES, "list", asks("list queues and workers", "GET", f"{_API}/workers")),
    **ours(QUEUES, "watch", Probe("kubectl get aq --watch", people.watches("aq", create_queue))),
    **ours(
        CRONS,
        "get",
        asks("see a cron job", "GET", f"{_API}/cron-jobs/{{name}}", prepare=create_cron_job),
    ),
    **ours(CRONS, "list", asks("list cron jobs", "GET", f"{_API}/cron-jobs")),
    **ours(
        CRONS, "watch", Probe("kubectl get acj --watch", people.watches("acj", create_cron_job))
    ),
    **_READS_ARRAYS,
}
_SUSPENDS: Final = f"{_API}/cron-jobs/{{name}}/suspend"
_ADMINISTERS: Final[Mapping[Right, Probe]] = {
    **_SEES,
    **ours(JOBS, "create", _SUBMITS),
    **ours(JOBS, "patch", Probe("cancel a job straight on Kubernetes", people.cancels)),
    **ours(JOBS, READ_PAYLOAD_VERB, Probe("read a result", asking.reads_a_result, direct=False)),
    **ours(JOBS, CONTROL_VERB, asks("cancel a job", "DELETE", _JOB, prepare=create_job)),
    **ours(QUEUES, "create", Probe("kubectl create of a queue", people.creates_queue)),
    **ours(
        QUEUES,
        "patch",
        asks("pause a queue", "POST", f"{_API}/queues/{{name}}/pause", prepare=create_queue),
    ),
    **ours(QUEUES, "update", Probe("kubectl replace of a queue", people.replaces_queue)),
    **ours(CRONS, "create", Probe("kubectl create of a cron job", people.creates_cron_job)),
    **ours(CRONS, "patch", asks("suspend a cron job", "POST", _SUSPENDS, prepare=create_cron_job)),
    **ours(CRONS, "update", Probe("kubectl replace of a cron job", people.replaces_cron_job)),
    **ours(CRONS, "delete", Probe("kubectl delete acj", people.deletes("acj", create_cron_job))),
    **ours(ARRAYS, "create", _SUBMITS_ARRAYS),
    **ours(
        ARRAYS,
        "patch",
        asks("suspend an array", "POST", f"{_ARRAY}/suspend", prepare=create_array),
    ),
    **ours(ARRAYS, "delete", Probe("kubectl delete aa", people.deletes("aa", create_array))),
    **on_leases("list", Probe("list workers straight on Kubernetes", people.lists_workers)),
}
_DELETES: Final[Mapping[Right, Probe]] = {
    **ours(JOBS, "delete", Probe("kubectl delete aj", people.deletes("aj", create_job))),
    **ours(QUEUES, "delete", Probe("kubectl delete aq", people.deletes("aq", create_queue))),
}
_SIGNALS: Final[Mapping[Right, Probe]] = {
    **ours(
        JOBS,
        SIGNAL_VERB,
        asks("approve", "POST", f"{_JOB}/signals/approval", {"payload": True}, prepare=create_job),
    ),
    **ours(JOBS, "get", asks("see what it waits for", "GET", _JOB, prepare=create_job)),
    **ours(JOBS, "patch", Probe("approve straight on Kubernetes", people.signals)),
}
_TESTS: Final = Probe(
    "submit a job and wait for its end",
    people.submits_and_waits,
    tolerates=frozenset({*ours(JOBS, "watch", _SUBMITS), *ours(QUEUES, "get", _SUBMITS)}),
)

PROBES: Final = {
    ("job-viewer", "asyncjob-job-viewer"): _SEES,
    ("job-submitter", "asyncjob-job-submitter"): {
        **_READS,
        **_READS_ARRAYS,
        **ours(JOBS, "create", _SUBMITS),
        **ours(ARRAYS, "create", _SUBMITS_ARRAYS),
    },
    ("job-admin", "asyncjob-job-admin"): _ADMINISTERS,
    ("job-deleter", "asyncjob-job-deleter"): _DELETES,
    ("job-signaller", "asyncjob-job-signaller"): _SIGNALS,
    ("asyncjob-test", "asyncjob-test"): ours(JOBS, "create get", _TESTS),
}
