"""The JSON Patches of a holder: heartbeat and outcome.

They carry the claim and the attempt instead of a resourceVersion, so that a user's label or cancel
does not collide with them. An operation that does not fit makes the API server refuse the whole
patch; `test` does so even where the CRD's rules are missing.
"""

from asyncjob.json_types import Json, JsonObject
from asyncjob.lifecycle.move import Move, json_patch, render
from asyncjob_worker.held import Draft, HeldJob

_RENEWALS = "/status/lease/renewals"


def renewal_body(held: HeldJob, draft: Draft | None, now: str) -> list[JsonObject]:
    """Return the JSON Patch of a heartbeat, with the handler's newest report if there is one.

    It fits only onto the renewal before it, so that one that was long on its way cannot undo a
    later one; and onto no job without a lease.
    """
    return [
        *_fence(held),
        {"op": "test", "path": _RENEWALS, "value": held.renewals},
        {"op": "replace", "path": _RENEWALS, "value": held.renewals + 1},
        {"op": "replace", "path": "/status/lease/renewTime", "value": now},
        {"op": "add", "path": "/status/lastUpdateTime", "value": now},
        *_report(draft),
    ]


def outcome_body(
    held: HeldJob, move: Move, status: JsonObject, draft: Draft | None
) -> list[JsonObject]:
    """Return the JSON Patch that carries an outcome and what the handler reported last.

    `status` is the newest known; the lease is removed whether it knows of one or not, so that the
    patch fits no job that has left Running.
    """
    outcome = json_patch(render(move, status), {**status, "lease": {}})
    return [*_fence(held), *_report(draft), *outcome]


def _fence(held: HeldJob) -> list[JsonObject]:
    return [
        {"op": "test", "path": "/status/claim", "value": held.claim},
        {"op": "test", "path": "/status/attempt", "value": held.job.attempt},
    ]


def _report(draft: Draft | None) -> list[JsonObject]:
    operations: list[JsonObject] = []
    if draft and draft.progress is not None:
        operations += _put("progress", draft.progress)
    if draft and draft.checkpoint_version:
        operations += _put("checkpoint", draft.checkpoint)
    return operations


def _put(name: str, value: Json) -> list[JsonObject]:
    """Replace a field whole; None removes it, whether it is there or not."""
    path = f"/status/{name}"
    if value is not None:
        return [{"op": "add", "path": path, "value": value}]
    return [{"op": "add", "path": path, "value": ""}, {"op": "remove", "path": path}]
