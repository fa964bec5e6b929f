"""Merge patches (RFC 7396) and JSON Patches (RFC 6902); what they are applied to stays as it is."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from asyncjob_simulation.apiserver.errors import bad_request, rejected

Json = Any


def merge(target: Json, patch: Json) -> Json:
    """Return the target with a merge patch applied."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def apply_json_patch(target: Json, operations: Json) -> Json:
    """Return the target with a JSON Patch applied; a failed test refuses the whole of it."""
    if not isinstance(operations, list):
        kind = "object" if isinstance(operations, dict) else type(operations).__name__
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {kind} into Go value of type "
            "[]handlers.jsonPatchOp"
        )
    for operation in operations:
        target = _apply(target, operation)
    return target


def _apply(target: Json, operation: Mapping[str, Json]) -> Json:
    act = _OPERATIONS.get(str(operation.get("op")))
    if act is None or not isinstance(operation.get("path"), str):
        raise rejected()
    return act(target, _steps(operation["path"]), operation)


def _steps(pointer: str) -> list[str]:
    if not pointer:
        return []
    if not pointer.startswith("/"):
        raise rejected()
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]


def _read(target: Json, steps: list[str]) -> Json:
    for step in steps:
        if isinstance(target, dict) and step in target:
            target = target[step]
        elif isinstance(target, list) and step.isdigit() and int(step) < len(target):
            target = target[int(step)]
        else:
            raise rejected()
    return target


def _changed(target: Json, steps: list[str], change: Callable[[Json, str], Json]) -> Json:
    """Return a copy in which the container of the last step is what `change` makes of it."""
    first, *rest = steps
    if not rest:
        return change(target, first)
    inner = _changed(_read(target, [first]), rest, change)
    if isinstance(target, dict):
        return {**target, first: inner}
    return [*target[: int(first)], inner, *target[int(first) + 1 :]]


def _test(target: Json, steps: list[str], operation: Mapping[str, Json]) -> Json:
    try:
        found = _read(target, steps)
    except Exception:
        # What is absent equals null to the library that the API server uses.
        if operation.get("value") is None and len(steps) and _has_parent(target, steps):
            return target
        raise
    if found != operation.get("value") or isinstance(found, bool) != isinstance(
        operation.get("value"), bool
    ):
        raise rejected()
    return target


def _has_parent(target: Json, steps: list[str]) -> bool:
    return isinstance(_read(target, steps[:-1]), dict)


def _add(target: Json, steps: list[str], operation: Mapping[str, Json]) -> Json:
    value = operation.get("value")

    def change(container: Json, key: str) -> Json:
        if isinstance(container, dict):
            return {**container, key: value}
        if isinstance(container, list):
            at = len(container) if key == "-" else _index(key, len(container))
            return [*container[:at], value, *container[at:]]
        raise rejected()

    return _changed(target, steps, change) if steps else value


def _replace(target: Json, steps: list[str], operation: Mapping[str, Json]) -> Json:
    value = operation.get("value")

    def change(container: Json, key: str) -> Json:
        if isinstance(container, dict):  # the library adds what is missing
            return {**container, key: value}
        if isinstance(container, list):
            at = _index(key, len(container) - 1)
            return [*container[:at], value, *container[at + 1 :]]
        raise rejected()

    return _changed(target, steps, change) if steps else value


def _remove(target: Json, steps: list[str], _: Mapping[str, Json]) -> Json:
    def change(container: Json, key: str) -> Json:
        if isinstance(container, dict) and key in container:
            return {name: value for name, value in container.items() if name != key}
        if isinstance(container, list):
            at = _index(key, len(container) - 1)
            return [*container[:at], *container[at + 1 :]]
        raise rejected()

    return _changed(target, steps, change) if steps else None


def _copy(target: Json, steps: list[str], operation: Mapping[str, Json]) -> Json:
    value = _read(target, _steps(str(operation.get("from"))))
    return _add(target, steps, {"value": value})


def _move(target: Json, steps: list[str], operation: Mapping[str, Json]) -> Json:
    source = _steps(str(operation.get("from")))
    value = _read(target, source)
    return _add(_remove(target, source, {}), steps, {"value": value})


def _index(key: str, last: int) -> int:
    if not key.isdigit() or int(key) > last:
        raise rejected()
    return int(key)


_OPERATIONS: Final[Mapping[str, Callable[[Json, list[str], Mapping[str, Json]], Json]]] = {
    "test": _test,
    "add": _add,
    "replace": _replace,
    "remove": _remove,
    "copy": _copy,
    "move": _move,
}
