"""Requests to the API server, with names that are the same in every run. Pure."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl

import orjson

_RANDOM: Final = re.compile(r"[0-9a-f]{8,}(-[0-9a-f]+)*")
"""UIDs, digests and random ends of names."""

_KEPT: Final = re.compile(r"/status/(step|wait)s(?:/(.+))?$")
"""Where a patch adds a step or a wait: to those that there are, or as the first."""

_DRY_RUN: Final = "dry run"
_AT_START: Final = "at start: "
_CORE_PARTS: Final = 2
_GROUP_PARTS: Final = 3


@dataclass(frozen=True, slots=True, order=True)
class Call:
    """One request of a part: what it asks for, and the how-manieth of its like it is."""

    what: str
    """Such as `PATCH asyncjobs/job/status Running`."""

    ordinal: int

    def __str__(self) -> str:
        return f"{self.what} #{self.ordinal}"


class CallCounter:
    """Gives the requests of one part their ordinals.

    Those `at_start`, before the scenario begins, have names of their own: no case means them.
    """

    def __init__(self, *, at_start: bool = False) -> None:
        self._seen: Counter[str] = Counter()
        self._prefix = _AT_START if at_start else ""

    def next(self, what: str) -> Call:
        """Return the call that a request is."""
        self._seen[what] += 1
        return Call(self._prefix + what, self._seen[what])


def describe(method: str, path: str, query: str, body: bytes) -> str:
    """Return what a request asks for, without what differs from run to run."""
    if "watch=" in query:
        verb = "WATCH"
    elif method == "GET" and _is_collection(path):
        verb = "LIST"
    else:
        verb = method
    target = "/".join(without_random(part) for part in _resource_parts(path))
    phase = _phase_in(body) if method == "PATCH" else ""
    dry = _DRY_RUN if "dryRun=" in query else ""
    return " ".join(filter(None, (verb, target, phase, dry)))


def may_be_past(method: str, query: str) -> bool:
    """Return whether an API server that lags may answer the request with the past.

    That is what its watch cache answers. Without a version, lists and reads are of now, and a watch
    that shows what there is at first as well; without that it begins wherever the cache is.
    """
    if method != "GET":
        return False
    asked = dict(parse_qsl(query))
    version = asked.get("resourceVersion", "")
    if version == "0":
        return True
    if "watch" in asked:
        return not version and asked.get("sendInitialEvents") != "true"
    return bool(version) and asked.get("resourceVersionMatch") != "Exact"


def describe_event(resource: str, line: bytes) -> str:
    """Return what an event of a watch tells; nothing for a bookmark."""
    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError:
        return ""
    if event.get("type") not in {"ADDED", "MODIFIED", "DELETED"}:
        return ""
    obj = subject_of(event)
    name = without_random(str(obj.get("metadata", {}).get("name", "")))
    status = obj.get("status")
    phase = str(status.get("phase", "")) if isinstance(status, dict) else ""
    return " ".join(filter(None, ("EVENT", f"{resource}/{name}", event["type"], phase)))


def subject_of(event: Any) -> dict[str, Any]:
    """Return the object that an event of a watch tells of; of a row without object, its name."""
    obj: dict[str, Any] = event.get("object") or {}
    if obj.get("kind") != "Table" or not obj.get("rows"):
        return obj
    row = obj["rows"][0]
    return row.get("object") or {"metadata": {"name": row["cells"][0]}}


def without_random(name: str) -> str:
    """Return a name with a star for what no other run has."""
    return _RANDOM.sub("*", name)


def is_write(call: Call) -> bool:
    """Return whether the request may change something: neither reads, reviews nor dry runs do."""
    if call.what.endswith(_DRY_RUN):
        return False
    verb, _, target = call.what.partition(" ")
    return verb not in {"GET", "LIST", "WATCH", "EVENT"} and "reviews" not in target


def _resource_parts(path: str) -> list[str]:
    """Return resource, name and subresource: a path without group, version and namespace."""
    parts = path.strip("/").split("/")
    parts = parts[_CORE_PARTS:] if parts[0] == "api" else parts[_GROUP_PARTS:]
    if len(parts) > 2 and parts[0] == "namespaces":  # noqa: PLR2004  # namespaces/name/resource
        parts = parts[2:]
    return parts or [path.strip("/")]


def _is_collection(path: str) -> bool:
    return len(_resource_parts(path)) == 1


def _phase_in(body: bytes) -> str:
    """Return the phase that a patch writes, or the step or wait that it adds."""
    try:
        patch = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    if isinstance(patch, list):
        return _phase_in_operations(patch)
    status = patch.get("status") if isinstance(patch, dict) else None
    return str(status.get("phase", "")) if isinstance(status, dict) else ""


def _phase_in_operations(operations: list[Any]) -> str:
    written = (one for one in operations if one.get("op") in {"add", "replace"})
    for operation in written:
        if operation.get("path") == "/status/phase":
            return str(operation.get("value", ""))
        value = operation.get("value")
        kept = _KEPT.match(str(operation.get("path", "")))
        if kept:
            return f"{kept[1]} {kept[2] or next(iter(value or ''), '')}"
        if operation.get("path") == "/status" and isinstance(value, dict):
            return str(value.get("phase", ""))
    return ""
