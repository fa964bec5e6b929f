"""Who wrote what, out of the audit log."""

import json
from typing import Any

from asyncjob_bench.stats.audit import AuditedWrite, count_writes, total

ACCOUNT = "system:serviceaccount:ns:"
JOBS = "asyncjobs.asyncjob.dev"


def line(
    verb: str,
    user: str,
    resource: str = "asyncjobs",
    *,
    group: str = "asyncjob.dev",
    subresource: str = "",
    code: int = 200,
    stage: str = "ResponseComplete",
    query: str = "",
) -> str:
    at = {"resource": resource, "apiGroup": group, "subresource": subresource}
    event: dict[str, Any] = {
        "stage": stage,
        "verb": verb,
        "user": {"username": user},
        "requestURI": f"/apis/x{query}",
        "objectRef": {key: value for key, value in at.items() if value},
        "responseStatus": {"code": code},
    }
    return json.dumps(event)


LOG = [
    line("create", f"{ACCOUNT}asyncjob-submitter", code=201),
    line("patch", f"{ACCOUNT}asyncjob-worker", subresource="status"),
    line("patch", f"{ACCOUNT}asyncjob-worker", subresource="status"),
    line("patch", f"{ACCOUNT}asyncjob-worker", subresource="status", code=409),
    line("patch", f"{ACCOUNT}asyncjob-operator", "leases", group="coordination.k8s.io"),
    line("patch", f"{ACCOUNT}asyncjob-worker", subresource="status", query="?dryRun=All"),
    line("patch", f"{ACCOUNT}asyncjob-worker", subresource="status", stage="ResponseStarted"),
    line("get", f"{ACCOUNT}asyncjob-worker"),
    line("create", "admin", "pods", group="", code=201),
]


def test_each_kind_of_write_is_counted_by_user_and_code() -> None:
    assert dict(count_writes(LOG)) == {
        AuditedWrite("asyncjob-submitter", "create", JOBS, 201): 1,
        AuditedWrite("asyncjob-worker", "patch", f"{JOBS}/status", 200): 2,
        AuditedWrite("asyncjob-worker", "patch", f"{JOBS}/status", 409): 1,
        AuditedWrite("asyncjob-operator", "patch", "leases.coordination.k8s.io", 200): 1,
        AuditedWrite("admin", "create", "pods", 201): 1,
    }


def test_writes_on_jobs_are_counted_apart_from_all_others() -> None:
    counts = count_writes(LOG)
    assert total(counts) == 4
    assert total(counts, only_stored=True) == 3
    assert total(counts, jobs=False) == 2


def test_a_user_who_wrote_leases_only_wrote_no_job() -> None:
    counts = count_writes(LOG)
    assert total(counts, user="asyncjob-operator") == 0
    assert total(counts, user="asyncjob-worker") == 3
