"""Arrays that are wrong by themselves, change what is fixed, or whose counts do not add up."""

from typing import Any, Final

from asyncjob.names import ARRAYS as PLURAL
from asyncjob.names import array_path, array_status_path, collection_path
from support.cluster.api import Answer
from support.forbidden.case import NUMBERS, Case, ForbiddenSetup
from support.objects.builders import array, at

_NONE: Final[dict[str, Any]] = {"total": 10, "next": 0, "succeeded": 0, "failed": 0}
_OPEN: Final = [{"name": "a-1", "items": "0-3", "generation": 1}]
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
    "generation": 1,
}
"""Items 0 to 3 are under way, 4 has failed, 5 and 6 are to be run again, 7 is done."""

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

_ENDED: Final[dict[str, Any]] = {name: SUCCEEDED[name] for name in ("completionTime", "conditions")}
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
    if status:
        path = array_status_path(setup.space.name, name)
        setup.operator.merge(path, {"status": status}).object()
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
    _started("a chunk of one that waits", {}, RUNNING, dependsOn=[{"name": "a"}]),
    _started("a chunk before its time", {}, RUNNING, notBefore=at(3600)),
    _started(
        "an admission taken back",
        {**RUNNING, "admitted": True},
        {"admitted": None},
        dependsOn=[{"array": "a"}],
    ),
    _written("array.counts-grow", "next that goes back", RUNNING, next=7, requeued=None),
    _written("array.counts-grow", "successes that are lost", RUNNING, succeeded=0, requeued="5,7"),
    _written("array.counts-grow", "a generation that goes back", RUNNING, generation=0),
    _written(
        "array.counts-grow",
        "failures that are forgotten",
        RUNNING,
        failed=0,
        failedItems=None,
        succeeded=2,
    ),
    _written("array.counts-add-up", "an item counted twice", RUNNING, succeeded=2),
    _written("array.counts-add-up", "a lost chunk", RUNNING, open=None),
    _written("array.counts-add-up", "a lost item to be run again", RUNNING, requeued=None),
    _written("array.counts-add-up", "a lost suspect", RUNNING, suspects=None),
    _written(
        "array.counts-add-up", "more items than there are", RUNNING, next=11, requeued="5,8-10"
    ),
    _written("array.failed-listed", "a failed item that is not listed", RUNNING, failedItems="4,5"),
    _written(
        "array.failed-listed",
        "a failed item left out early",
        RUNNING,
        failedItems=None,
        failedUnlisted=1,
    ),
    _written("array.ended", "an end with a chunk under way", RUNNING, phase="Failed", **_ENDED),
    _written(
        "array.ended",
        "an end without a time",
        RUNNING,
        phase="Failed",
        open=None,
        requeued="0-3,5",
        conditions=_ENDED["conditions"],
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
        "a success with items left",
        RUNNING,
        phase="Succeeded",
        open=None,
        requeued="0-3,5",
        **_ENDED,
    ),
    _written(
        "array.ended",
        "a cancellation that nobody asked for",
        RUNNING,
        phase="Cancelled",
        open=None,
        requeued="0-3,5",
        **_ENDED,
    ),
    _written("array.frozen", "a success that is explained", SUCCEEDED, message="well done"),
    _written("array.frozen", "a failure that ends again", FAILED, completionTime=at(90)),
)
