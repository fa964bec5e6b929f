"""Lives of jobs without an API server: writes applied to objects in memory, and kept. Pure."""

from copy import deepcopy
from typing import Any, Final

from asyncjob_dev.release.writes import (
    POD_UID,
    RESOURCE_VERSION,
    SAMPLE_LIVES,
    Object,
    write,
    write_record,
)

_NOW: Final = "2026-01-01T00:{:02}:00.000Z"
_COUNTERS: Final = ("attempt", "retries", "crashes", "releases", "redrives", "reruns")


def record_lives(version: str) -> Object:
    """Return all lives with their writes, as this version makes them."""
    lives = [
        {"name": name, "spec": spec, "writes": _writes(name, spec, acts)}
        for name, (spec, acts) in SAMPLE_LIVES.items()
    ]
    return {"version": version, "lives": lives}


def write_time(number: int) -> str:
    """Return when the write of this number is made."""
    return _NOW.format(number + 1)


def _writes(name: str, spec: Object, acts: tuple[str, ...]) -> list[Object]:
    job, kept = _created(name, spec), []
    for number, act in enumerate(acts):
        made = write(act, job, pod_uid=POD_UID, now=write_time(number))
        job = applied(job, made.body)
        kept.append(write_record(made, job["status"]["phase"]))
    return kept


def _created(name: str, spec: Object) -> Object:
    return {
        "metadata": {"name": name, "uid": "uid", "resourceVersion": RESOURCE_VERSION},
        "spec": {"type": "echo", "queue": "default", "priority": 0, **spec},
        "status": {"phase": "Queued", **dict.fromkeys(_COUNTERS, 0)},
    }


def applied(obj: Object, body: Any) -> Object:
    """Return the object after a merge-patch or a JSON Patch, as the API server would have it."""
    after = deepcopy(obj)
    if isinstance(body, dict):
        _merge(after, body)
        return after
    for operation in body:
        *way, last = operation["path"].lstrip("/").split("/")
        target = after
        for step in way:
            target = target[step]
        match operation["op"]:
            case "remove":
                del target[last]
            case "add" | "replace":
                target[last] = operation["value"]
            case "test":
                assert target[last] == operation["value"], operation
    return after


def _merge(target: Object, patch: Object) -> None:
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        elif isinstance(value, dict) and isinstance(target.get(name), dict):
            _merge(target[name], value)
        else:
            target[name] = deepcopy(value)
