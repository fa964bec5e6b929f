"""Who wrote what, out of the audit log."""

import json
from typing import Any

from asyncjob_bench.stats.audit import (
    AuditedWrite,
    count_writes,
    most_objects,
    total,
    total_of_arrays,
)

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


def named(verb: str, name: str, resource: str = "asyncjobs", *, subresource: str = "") -> str:
    code = 201 if verb == "create" else 200
    event = json.loads(line(verb, "any", resource, subresource=subresource, code=code))
    event["objectRef"]["name"] = name
    return json.dumps(event)


ARRAY_LOG = [
    named("create", "array", "asyncarrays"),
    named("patch", "array", "asyncarrays", subresource="status"),
    named("create", "one"),
    named("create", "two"),
    named("patch", "one", subresource="status"),
    named("delete", "one"),
    named("create", "three"),
    named("delete", "two"),
    named("delete", "of-others"),
    named("delete", "three"),
    named("delete", "array", "asyncarrays"),
    named("create", "array", "asyncqueues"),
    line("create", "any", code=409),
]


def test_writes_on_arrays_and_their_chunks_count_together_once_they_took_effect() -> None:
    assert total_of_arrays(count_writes(ARRAY_LOG)) == 11
    assert total_of_arrays(count_writes(LOG)) == 3


def test_the_most_objects_at_one_time_are_those_that_were_not_deleted_yet() -> None:
    assert most_objects(ARRAY_LOG) == 3
    assert most_objects([]) == 0
