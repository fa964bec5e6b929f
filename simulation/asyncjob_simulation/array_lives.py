"""Lives of arrays: what people may change of one, changed several times while its items run.

Of an array's spec only `suspend`, `cancel` and `redrive` may change. Each change asks for some of
them, made from the schema, and now and then for a field that may not change. An array that had all
that asked of it, one after the other, ends as one that was created with what was taken of it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from asyncjob import WorkerApp
from asyncjob.names import ARRAYS, array_path
from asyncjob.rules.array_policies import ARRAY_CONTROL_FIELDS
from asyncjob_simulation.array_rules import ENDED, items_in
from asyncjob_simulation.clocks import time_text
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.dice import Dice
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.item_runs import ITEMS, ItemRuns, add_item_handlers
from asyncjob_simulation.quiet_cluster import STEP_SECONDS, Object, QuietCluster
from asyncjob_simulation.schema_values import made_value, spec_schema

ARRAY_CHANGES: Final = 5
"""With the creation: more than of others, because an array runs meanwhile."""

ARRAY_BEGINS_AT: Final = 160.0
"""When an array has had all its changes, in seconds of virtual time."""

_SETTLE_SECONDS: Final = 90.0
"""In which every chunk ends that ran when its array was suspended."""

_STILL_SECONDS: Final = 60.0
_HOLD_SECONDS: Final = 5.0
"""In which the chunks of a suspended array are suspended that nobody has claimed."""

_END_SECONDS: Final = 700.0
_PATH: Final = array_path(NAMESPACE, "lived")
_COUNTS: Final = ("generation", "succeeded", "failed")

ARRAY_VALUES: Final[dict[str, Sequence[Any]]] = {
    "type": (ITEMS,),
    "queue": ("lived",),
    "notBefore": (time_text(-60.0), time_text(70.0), time_text(140.0)),
    # As for queues: what ends attempts by the second depends on which second it is.
    "queueTimeoutSeconds": (86_400,),
    "executionTimeoutSeconds": (600, 3600),
    "itemTimeoutSeconds": (60, 86_400),
    "leaseDurationSeconds": (5, 60),
    "cancelGraceSeconds": (0, 30),
    "itemRetries": (0, 2),
    "maxDelaySeconds": (1, 5),
    "initialDelaySeconds": (0, 1),
    "retryOn": (["Internal"], ["Timeout"]),
    "noRetryOn": (["Internal"], ["Timeout"]),
}
_ASKED: Final = {"suspend": 0.6, "cancel": 0.15, "redrive": 0.4}
"""How often a change asks for each. A cancel cannot be taken back; most lives go on for longer."""

LEFT_OUT: Final = (
    *("payload", "items"),  # made below: a schema does not tell what they may be
    "dependsOn",  # nothing else is there
    "results",  # workers have no store
    "ttlSecondsAfterFinished",  # what is deleted is not there to be compared
)


def array_spec(dice: Dice, number: int) -> Object:
    """Return the spec of a new array, or from the second on a change of one."""
    name, known = f"array {number}", spec_schema(ARRAYS)["properties"]
    fixed = {
        "type": "object",
        "properties": {
            field: one
            for field, one in known.items()
            if field not in {*ARRAY_CONTROL_FIELDS, *LEFT_OUT}
        },
        "required": ("type", "queue", "itemRetries"),
    }
    if number and dice.happens(f"{name} asks for too much", 0.2):
        spec: Object = made_value(fixed, dice, name, ARRAY_VALUES)
        return spec
    controls = {
        "type": "object",
        "properties": {field: known[field] for field in ARRAY_CONTROL_FIELDS},
        "required": ARRAY_CONTROL_FIELDS,
    }
    change: Object = made_value(controls, dice, f"{name} changes", {})
    for field, chance in _ASKED.items():
        if not dice.happens(f"{name} asks for {field}", chance):
            del change[field]
    if number:
        return change
    change.pop("redrive", None)
    spec = made_value(fixed, dice, name, ARRAY_VALUES)
    if "maxFailed" in spec:
        spec.pop("maxFailedPercent", None)
    return {**spec, **change, **_items(dice)}


def _items(dice: Dice) -> Object:
    count = dice.choice("items", (1, 5, 12, 12))
    items: Object = {"count": count}
    if dice.happens("items inline", 0.3):
        items = {"inline": [f"item {item}" for item in range(count)]}
    some = {
        name: [item for item in range(count) if dice.happens(f"{item} {name}", chance)]
        for name, chance in (("skipped", 0.2), ("failing", dice.choice("share", (0.0, 0.3, 0.3))))
    }
    if some["skipped"] and dice.happens("items skipped", 0.3):
        items["skip"] = ",".join(map(str, some["skipped"]))
    pause = dice.choice("pause", (0.5, 10.0, 25.0))
    return {
        "items": items,
        "payload": {"pause": pause, "failing": some["failing"], "killing": []},
    }


def array_app(calls: HandlerCalls) -> WorkerApp:
    """Return the app of a worker that runs items."""
    app = WorkerApp()
    add_item_handlers(app, ItemRuns(calls, lambda _: None))
    return app


async def array_life(specs: Sequence[Object], begins_at: float, cluster: QuietCluster) -> Object:
    """Create an array, change it, see that it does as its fields say, and let it end."""
    taken: Object = {}
    runs, runs_before = cluster.handlers.runs, -1
    most: int | None = None
    for number, spec in enumerate(specs):
        if not number:
            cluster.put("AsyncArray", _PATH, ARRAYS, "lived", spec)
            taken = spec
        else:
            answer = cluster.write("PATCH", _PATH, {"spec": spec})
            if answer is not None:
                if spec.get("redrive", 0) > taken.get("redrive", 0):
                    runs_before = len(runs)
                taken = {**taken, **heeded(spec, answer["status"])}
        await asyncio.sleep(_HOLD_SECONDS)
        if not _array(cluster)["spec"].get("suspend"):
            most = None
        elif most is None:
            most = _may_be_counted(cluster)
        await asyncio.sleep(STEP_SECONDS - _HOLD_SECONDS)
        if cluster.dice.happens(f"restart {number}", 0.5):
            cluster.restart_operator()
    await asyncio.sleep(max(0.0, cluster.until(begins_at)) + _SETTLE_SECONDS)
    stood = await _stands_still(cluster)
    goes_on = most is not None and _counted(_array(cluster)["status"]) > most
    # An array that is suspended has no end to be compared.
    suspended = _array(cluster)["spec"].get("suspend", False)
    cluster.write("PATCH", _PATH, {"spec": {"suspend": False}})
    await asyncio.sleep(_END_SECONDS)
    array = _array(cluster)
    status = array["status"]
    end: Object = {
        "phase": status.get("phase"),
        "reason": status.get("reason"),
        "total": status.get("total"),
        "open": status.get("openCount"),
        "conditions": [one["type"] for one in status.get("conditions", ())],
        "chunks": sorted(cluster.jobs()),
        "suspended": suspended,
        "goes on though suspended": suspended and (goes_on or not stood),
        "redrives": status.get("redrives", 0),
        "fixed": {k: v for k, v in array["spec"].items() if k not in ARRAY_CONTROL_FIELDS},
        # What was not run when it was stopped depends on when that was.
        "items": None if is_stopped(status) else counted(status),
        "taken": {**taken, "redrive": 0} if "redrive" in taken else taken,
        "asked": taken.get("redrive", 0),
        "run again": len(runs) > runs_before,
    }
    return end


def heeded(change: Object, status: Object) -> Object:
    """Return what of a change that was taken still makes a difference in this status."""
    if status.get("phase") in ("Succeeded", "Cancelled"):
        return {k: v for k, v in change.items() if k not in ("cancel", "suspend")}
    return change


def _array(cluster: QuietCluster) -> Object:
    array = cluster.find(_PATH)
    assert array is not None, "nobody has deleted it"
    return array


def _counted(status: Object) -> int:
    return int(status.get("succeeded", 0)) + int(status.get("failed", 0))


def _may_be_counted(cluster: QuietCluster) -> int:
    """Return how many items there will be counted if nothing is begun any more."""
    status, jobs = _array(cluster)["status"], cluster.jobs()
    running = [one for one in status.get("open", ()) if _runs(jobs.get(one["name"], {}))]
    return _counted(status) + sum(len(items_in(one["items"])) for one in running)


def _runs(job: Object) -> bool:
    return job.get("status", {}).get("phase") not in (None, "Queued", "Pending")


async def _stands_still(cluster: QuietCluster) -> bool:
    """Return whether nothing is cut, run or counted for a while."""
    before = _array(cluster)["status"]
    await asyncio.sleep(_STILL_SECONDS)
    after = _array(cluster)["status"]
    runs = any(map(_runs, cluster.jobs().values()))
    return not runs and all(before.get(name) == after.get(name) for name in _COUNTS)


def is_stopped(status: Mapping[str, Any]) -> bool:
    """Return whether an array has ended before all of its items were run."""
    return status.get("phase") == "Cancelled" or status.get("reason") == "TooManyFailed"


def counted(status: Mapping[str, Any]) -> Object:
    """Return which items have failed, which have an error, and how many are done."""
    return {
        "succeeded": status.get("succeeded"),
        "failed": sorted(items_in(status.get("failedItems", ""))),
        "errors": sorted({one["item"] for one in status.get("errors", ())}),
    }


def expected_end(spec: Object) -> Object:
    """Return the end that an array of this spec comes to, by what is promised of its fields."""
    items, told = spec["items"], spec["payload"]
    total = items.get("count") or len(items["inline"])
    failing = sorted({*told["failing"]} - items_in(items.get("skip", "")))
    limit = spec.get("maxFailed")
    if limit is None and "maxFailedPercent" in spec:
        limit = total * spec["maxFailedPercent"] // 100
    all_run: Object = {"succeeded": total - len(failing), "failed": failing, "errors": failing}
    if spec.get("cancel"):
        return {"phase": "Cancelled", "reason": "CancelRequested", "items": None}
    if limit is not None and len(failing) > limit:
        return {"phase": "Failed", "reason": "TooManyFailed", "items": None}
    if failing and limit is None:
        return {"phase": "Failed", "reason": "ItemsFailed", "items": all_run}
    return {"phase": "Succeeded", "reason": None, "items": all_run}


def array_promises(spec: Object, end: Object) -> list[tuple[str, object, object]]:
    """Return where the array is not as its fields say."""
    found: list[tuple[str, object, object]] = [
        (f"another end: {name}", end[name], expected)
        for name, expected in expected_end(spec).items()
        if end[name] != expected
    ]
    if end["goes on though suspended"]:
        found.append(("a suspended array goes on", True, False))
    if end["phase"] in ENDED and (end["open"] or end["chunks"]):
        found.append(("chunks of an array that has ended", end["chunks"], []))
    if end["redrives"] != end["asked"]:
        found.append(("redrives that were not acted on", end["redrives"], end["asked"]))
    if not end["run again"] and end["phase"] != "Cancelled":
        found.append(("a redrive after which nothing was run", end["run again"], True))
    return found
