"""Arrays that are wrong by themselves, change what is fixed, or whose counts do not add up."""

from typing import Any, Final

from asyncjob.names import ARRAYS as PLURAL
from asyncjob.names import array_path, array_status_path, collection_path
from support.cluster.api import Answer
from support.forbidden.case import NUMBERS, Case, ForbiddenSetup
from support.objects.builders import array, at

_NONE: Final[dict[str, Any]] = {"total": 10, "next": 0, "succeeded": 0, "failed": 0}
_OPEN: Final = [{"name": "a-2", "items": "0-3", "generation": 2}]
RUNNING: Final[dict[str, Any]] = {
    "phase": "Running",
    "total": 10,
    "next": 8,
    "succeeded": 1,
    "failed": 1,
    "failedItems": "4",
    "open": _OPEN,
    "requeued": "5",
    "suspects": ["6"],
    "generation": 2,
}
"""Items 0 to 3 are under way, 4 has failed, 5 and 6 are to be run again, 7 is done."""

_CUT: Final[dict[str, Any]] = {
    "phase": "Running",
    "total": 10,
    "next": 4,
    "open": [{"name": "a-1", "items": "0-3", "generation": 1}],
    "generation": 1,
}
FAILED: Final[dict[str, Any]] = {
    "phase": "Failed",
    "total": 10,
    "next": 10,
    "succeeded": 8,
    "failed": 2,
    "failedItems": "4,7",
    "generation": 3,
    "completionTime": at(60),
    "conditions": [{"type": "Failed", "status": "True", "lastTransitionTime": at(60)}],
}
SUCCEEDED: Final[dict[str, Any]] = {
    "phase": "Succeeded",
    "total": 10,
    "next": 10,
    "succeeded": 10,
    "failed": 0,
    "generation": 3,
    "completionTime": at(60),
    "conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": at(60)}],
}
INDEX: Final[dict[str, Any]] = {
    "records": 10,
    "sizeBytes": 100,
    "version": "mtime=1",
    "every": 1000,
    "offsets": [0],
}
IN_A_FILE: Final[dict[str, Any]] = {"from": {"uri": "memory://items/a.csv"}}


def _ended(condition: str, status: str = "True") -> dict[str, Any]:
    """Return what an array has once it has ended, with this condition."""
    one = {"type": condition, "status": status, "lastTransitionTime": at(60)}
    return {"completionTime": at(60), "conditions": [one]}


_FAILED: Final = _ended("Failed")
_SUCCEEDED: Final = _ended("Complete")
_REDRIVEN: Final = {"phase": "Running", "completionTime": None, "conditions": None}


def _created(rule: str, title: str, **spec: Any) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        path = collection_path(setup.space.name, PLURAL)
        return setup.acting(setup.space.admin).create(path, array(f"case-{next(NUMBERS)}", **spec))

    return Case(rule, title, attempt)


def _stored(setup: ForbiddenSetup, status: dict[str, Any], **spec: Any) -> str:
    name = f"case-{next(NUMBERS)}"
    setup.space.admin.create(
        collection_path(setup.space.name, PLURAL), array(name, **spec)
    ).object()
    path = array_status_path(setup.space.name, name)
    if done := status.get("succeeded"):
        chunk = {"name": "a-1", "items": f"0-{done - 1}", "generation": 1}
        cut = {**_CUT, "next": done, "open": [chunk], "admitted": status.get("admitted")}
        setup.operator.merge(path, {"status": cut}).object()
    if status:
        setup.operator.merge(path, {"status": {"open": None, **status}}).object()
    return name


def _changed(
    rule: str, title: str, status: dict[str, Any], change: dict[str, Any], **spec: Any
) -> Case:
    """Return a change of the spec of an array with this status."""

    def attempt(setup: ForbiddenSetup) -> Answer:
        path = array_path(setup.space.name, _stored(setup, status, **spec))
        return setup.acting(setup.space.admin).merge(path, {"spec": change})

    return Case(rule, title, attempt)


def _redrive_lowered(setup: ForbiddenSetup) -> Answer:
    path = array_path(setup.space.name, _stored(setup, FAILED))
    setup.space.admin.merge(path, {"spec": {"redrive": 2}}).object()
    return setup.acting(setup.space.admin).merge(path, {"spec": {"redrive": 1}})


def _written(
    rule: str,
    title: str,
    before: dict[str, Any],
    redrive: int = 0,
    items: dict[str, Any] | None = None,
    **change: Any,
) -> Case:
    """Return a write by the operator to the status of an array that has this one."""

    def attempt(setup: ForbiddenSetup) -> Answer:
        name = _stored(setup, before, **({"items": items} if items else {}))
        if redrive:
            path = array_path(setup.space.name, name)
            setup.space.admin.merge(path, {"spec": {"redrive": redrive}}).object()
        path = array_status_path(setup.space.name, name)
        return setup.acting(setup.operator).merge(path, {"status": change})

    return Case(rule, title, attempt)


def _selfish(setup: ForbiddenSetup) -> Answer:
    path, name = collection_path(setup.space.name, PLURAL), f"case-{next(NUMBERS)}"
    body = array(name, dependsOn=[{"name": name}, {"array": name, "outcome": "Any"}])
    return setup.acting(setup.space.admin).create(path, body)


def _started(title: str, before: dict[str, Any], change: dict[str, Any], **spec: Any) -> Case:
    """Return a write to an array that has to wait."""

    def attempt(setup: ForbiddenSetup) -> Answer:
        path = array_status_path(setup.space.name, _stored(setup, before, **spec))
        return setup.acting(setup.operator).merge(path, {"status": change})

    return Case("array.admitted", title, attempt)


def _held(title: str, **control: bool) -> Case:
    """Return a write that cuts a chunk of an array that is held."""

    def attempt(setup: ForbiddenSetup) -> Answer:
        name = _stored(setup, RUNNING)
        setup.space.admin.merge(array_path(setup.space.name, name), {"spec": control}).object()
        path = array_status_path(setup.space.name, name)
        cut = [*_OPEN, {"name": "a-3", "items": "8", "generation": 3}]
        change = {"next": 9, "generation": 3, "open": cut}
        return setup.acting(setup.operator).merge(path, {"status": change})

    return Case("array.held", title, attempt)


def _by_a_stranger(setup: ForbiddenSetup) -> Answer:
    name = f"stranger-{next(NUMBERS)}"
    setup.space.grant(
        name,
        {
            "apiGroups": ["asyncjob.dev"],
            "resources": [f"{PLURAL}/status", PLURAL],
            "verbs": ["get", "patch", "update"],
        },
    )
    path = array_status_path(setup.space.name, _stored(setup, RUNNING))
    stranger = setup.acting(setup.space.as_account(name))
    return stranger.merge(path, {"status": {"message": "mine"}})


ARRAYS: Final[tuple[Case, ...]] = (
    _created("array.one-source", "no items", items={}),
    _created("array.one-source", "items by number and in place", items={"count": 1, "inline": [1]}),
    _created(
        "array.one-source",
        "items by number and in a file",
        items={"count": 1, "from": {"uri": "memory://items/a.csv"}},
    ),
    _created(
        "array.skip", "a skipped item that there is not", items={"count": 10, "skip": "0-3,9-10"}
    ),
    _created(
        "array.skip", "a skipped item beyond those in place", items={"inline": [1], "skip": "1"}
    ),
    _created("array.skip", "a range backwards", items={"from": IN_A_FILE["from"], "skip": "5-3"}),
    _created(
        "array.dependencies",
        "one array twice",
        dependsOn=[{"array": "a"}, {"name": "a"}, {"array": "a", "outcome": "Any"}],
    ),
    Case("array.depends-on-others", "an array that depends on itself", _selfish),
    _created("array.one-limit", "two limits", maxFailed=1, maxFailedPercent=1),
    _created("array.redrive-not-at-creation", "a redrive at creation", redrive=1),
    _changed("array.spec-fixed", "more items", {}, {"items": {"count": 11}}),
    _changed("array.spec-fixed", "another payload", {}, {"payload": {"b": 1}}, payload={"a": 1}),
    _changed("array.spec-fixed", "less parallelism", {}, {"parallelism": 1}),
    _changed("array.cancel-latches", "a cancel taken back", {}, {"cancel": False}, cancel=True),
    _changed("array.cancel-unended", "a cancel of what has failed", FAILED, {"cancel": True}),
    _changed("array.redrive-failed", "a redrive while it runs", RUNNING, {"redrive": 1}),
    _changed("array.redrive-failed", "a redrive of what succeeded", SUCCEEDED, {"redrive": 1}),
    Case("array.redrive-grows", "a redrive lowered", _redrive_lowered),
    Case("array.writer", "a status by who may not operate", _by_a_stranger),
    _written("array.phases", "running that becomes pending", RUNNING, phase="Pending"),
    _written("array.redrives", "a redrive of its own accord", RUNNING, redrives=1),
    _written("array.redrives", "another redrive than asked for", FAILED, redrive=2, redrives=1),
    _written("array.total", "a total that nobody asked for", {}, **{**_NONE, "total": 11}),
    _written("array.index", "an index of items that are in no file", RUNNING, index=INDEX),
    _written(
        "array.index",
        "another index",
        {**_NONE, "index": INDEX},
        index={**INDEX, "version": "another"},
        items=IN_A_FILE,
    ),
    _written(
        "array.index",
        "an index taken back",
        {**_NONE, "index": INDEX},
        index=None,
        total=0,
        items=IN_A_FILE,
    ),
    _written("array.total", "a total before there is an index", {}, **_NONE, items=IN_A_FILE),
    _started("a chunk of one that waits", {}, _CUT, dependsOn=[{"name": "a"}]),
    _started("a chunk before its time", {}, _CUT, notBefore=at(3600)),
    _started(
        "an admission taken back",
        {**RUNNING, "admitted": True},
        {"admitted": None},
        dependsOn=[{"array": "a"}],
    ),
    _written("array.counts-grow", "next that goes back", RUNNING, next=7, requeued=None),
    _written("array.counts-grow", "successes that are lost", RUNNING, succeeded=0, requeued="5,7"),
    _written(
        "array.counts-grow",
        "a generation that goes back",
        {**RUNNING, "generation": 3},
        generation=2,
    ),
    _written(
        "array.counts-grow",
        "failures that are forgotten",
        RUNNING,
        failed=0,
        failedItems=None,
        requeued="4-5",
    ),
    _written("array.counts-add-up", "an item counted twice", RUNNING, failed=2, failedItems="4,9"),
    _written("array.counts-add-up", "a lost chunk", RUNNING, open=None),
    _written("array.counts-add-up", "a lost item to be run again", RUNNING, requeued=None),
    _written("array.counts-add-up", "a lost suspect", RUNNING, suspects=None),
    _written(
        "array.counts-add-up", "more items than there are", RUNNING, next=11, requeued="5,8-10"
    ),
    _written(
        "array.items-ascend",
        "a range that takes an item away",
        RUNNING,
        failed=2,
        failedItems="4,9",
        requeued="5-6,9-7",
        suspects=None,
    ),
    _written("array.items-ascend", "items in any order", RUNNING, requeued=None, suspects=["6,5"]),
    _written(
        "array.open-kept", "other items for a chunk", RUNNING, open=[{**_OPEN[0], "items": "4-7"}]
    ),
    _written(
        "array.open-kept", "another job for a chunk", RUNNING, open=[{**_OPEN[0], "name": "a-3"}]
    ),
    _written(
        "array.open-kept",
        "another UID for a chunk",
        {**RUNNING, "open": [{**_OPEN[0], "uid": "a"}]},
        open=[{**_OPEN[0], "uid": "b"}],
    ),
    _written(
        "array.open-kept",
        "a chunk that comes back",
        {**RUNNING, "generation": 3},
        next=9,
        open=[*_OPEN, {"name": "a-3", "items": "8", "generation": 3}],
    ),
    _written(
        "array.open-kept",
        "two chunks of one generation",
        RUNNING,
        next=10,
        generation=3,
        open=[
            *_OPEN,
            {"name": "a-3", "items": "8", "generation": 3},
            {"name": "a-4", "items": "9", "generation": 3},
        ],
    ),
    _written(
        "array.open-kept",
        "a chunk of a generation to come",
        RUNNING,
        next=9,
        open=[*_OPEN, {"name": "a-4", "items": "8", "generation": 4}],
    ),
    _written("array.done-by-chunks", "an item done without a chunk", RUNNING, next=9, succeeded=2),
    _written(
        "array.done-by-chunks",
        "more items done than the chunk has",
        RUNNING,
        open=None,
        succeeded=6,
        requeued=None,
    ),
    _held("a chunk while it is suspended", suspend=True),
    _held("a chunk of what is to be cancelled", cancel=True),
    _written("array.failed-listed", "a failed item that is not listed", RUNNING, failedItems="4,5"),
    _written(
        "array.failed-listed",
        "a failed item left out early",
        RUNNING,
        failedItems=None,
        failedUnlisted=1,
    ),
    _written("array.ended", "an end with a chunk under way", RUNNING, phase="Failed", **_FAILED),
    _written(
        "array.ended",
        "an end without a time",
        RUNNING,
        phase="Failed",
        open=None,
        requeued="0-3,5",
        conditions=_FAILED["conditions"],
    ),
    _written(
        "array.ended",
        "an end without a condition",
        RUNNING,
        phase="Failed",
        open=None,
        requeued="0-3,5",
        completionTime=at(60),
    ),
    _written(
        "array.ended",
        "an end with the condition of another phase",
        RUNNING,
        phase="Failed",
        open=None,
        requeued="0-3,5",
        **_SUCCEEDED,
    ),
    _written(
        "array.ended",
        "an end with a condition that is not true",
        RUNNING,
        phase="Failed",
        open=None,
        requeued="0-3,5",
        **_ended("Failed", "False"),
    ),
    _written(
        "array.ended", "a condition before the end", RUNNING, conditions=_FAILED["conditions"]
    ),
    _written("array.ended", "a completion time before the end", RUNNING, completionTime=at(60)),
    _written(
        "array.ended",
        "a cancellation that nobody asked for",
        RUNNING,
        phase="Cancelled",
        open=None,
        requeued="0-3,5",
        **_ended("Cancelled"),
    ),
    _written(
        "array.succeeded",
        "a success with items left",
        {**RUNNING, "failed": 0, "failedItems": None, "succeeded": 2},
        phase="Succeeded",
        open=None,
        requeued="0-3,5",
        **_SUCCEEDED,
    ),
    _written(
        "array.succeeded",
        "a success before the items of a file are counted",
        {},
        phase="Succeeded",
        total=0,
        items=IN_A_FILE,
        **_SUCCEEDED,
    ),
    _written(
        "array.succeeded",
        "a success with failed items",
        {},
        **{**SUCCEEDED, "succeeded": 0, "requeued": None, "failed": 10, "failedItems": "0-9"},
    ),
    _written("array.frozen", "a success that is explained", SUCCEEDED, message="well done"),
    _written("array.frozen", "a failure that ends again", FAILED, completionTime=at(90)),
)
