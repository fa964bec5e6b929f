"""The JSON Patches of a lease holder: heartbeat, step and outcome.

They test the claim and the attempt instead of a resourceVersion, so that a user's label or cancel
does not conflict with them. If one operation fails, the API server refuses the whole patch; a
failed `test` does so even where the CRD's rules are missing.
"""

from asyncjob.json_types import Json, JsonObject
from asyncjob.lifecycle.phase_change import PhaseChange, status_fields, status_json_patch
from asyncjob.lifecycle.phases import Phase
from asyncjob_worker.leases.held_job import HandlerReport, HeldJob

_RENEWALS_PATH = "/status/lease/renewals"


def renewal_patch(held: HeldJob, report: HandlerReport | None, now: str) -> list[JsonObject]:
    """Return the JSON Patch of a heartbeat, with the handler's newest report if there is one.

    It applies only on top of the renewal before it, so that a delayed heartbeat cannot undo a later
    one, and never to a job without a lease. `now` is RFC 3339 text.
    """
    return [
        *_fence_operations(held),
        {"op": "test", "path": _RENEWALS_PATH, "value": held.renewals},
        {"op": "replace", "path": _RENEWALS_PATH, "value": held.renewals + 1},
        {"op": "replace", "path": "/status/lease/renewTime", "value": now},
        {"op": "add", "path": "/status/lastUpdateTime", "value": now},
        *_report_operations(report),
    ]


def outcome_patch(
    held: HeldJob, outcome: PhaseChange, status: JsonObject, report: HandlerReport | None
) -> list[JsonObject]:
    """Return the JSON Patch of an outcome, with the handler's last report if it is not stored yet.

    `status` is the newest that was read. The patch removes the lease even if `status` has none: so
    it fails for a job that has left Running.
    """
    operations = status_json_patch(status_fields(outcome, status), {**status, "lease": {}})
    return [*_fence_operations(held), *_report_operations(report), *operations]


def step_patch(
    held: HeldJob, field: str, key: str, record: JsonObject, now: str, *, first: bool
) -> list[JsonObject]:
    """Return the JSON Patch that adds the record of a step, or of a wait, to that field.

    `first` where the job has none yet. `now` is RFC 3339 text. Applied twice it changes nothing,
    and never on a job without a lease.
    """
    name = key.replace("~", "~0").replace("/", "~1")
    add: JsonObject = (
        {"op": "add", "path": f"/status/{field}", "value": {key: record}}
        if first
        else {"op": "add", "path": f"/status/{field}/{name}", "value": record}
    )
    return [
        *_fence_operations(held),
        {"op": "test", "path": "/status/phase", "value": Phase.RUNNING},
        add,
        {"op": "add", "path": "/status/lastUpdateTime", "value": now},
    ]


def _fence_operations(held: HeldJob) -> list[JsonObject]:
    return [
        {"op": "test", "path": "/status/claim", "value": held.claim},
        {"op": "test", "path": "/status/attempt", "value": held.job.attempt},
    ]


def _report_operations(report: HandlerReport | None) -> list[JsonObject]:
    operations: list[JsonObject] = []
    if report and report.progress is not None:
        operations += _set_or_remove("progress", report.progress)
    if report and report.checkpoint_version:
        operations += _set_or_remove("checkpoint", report.checkpoint)
    return operations


def _set_or_remove(name: str, value: Json) -> list[JsonObject]:
    """Replace a whole field; None removes it, whether it is there or not."""
    path = f"/status/{name}"
    if value is not None:
        return [{"op": "add", "path": path, "value": value}]
    return [{"op": "add", "path": path, "value": ""}, {"op": "remove", "path": path}]
