"""`metadata.managedFields`: who wrote which field last, and when.

As a real API server tracks it for writes that are no server-side apply. The policies rest on that:
they refuse changes of what is said of the status.
"""

from collections.abc import Mapping
from typing import Any, Final

from asyncjob_simulation.apiserver.encoding import encode
from asyncjob_simulation.apiserver.schema import Schema

Object = dict[str, Any]
Fields = dict[str, Any]

_UNTRACKED: Final = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "managedFields",
        "selfLink",
    }
)
_LIST_KEYS: Final = ("v:", "k:")
_ABSENT: Final = object()
_OPEN: Final = Schema({"x-kubernetes-preserve-unknown-fields": True})


def is_trackable(entries: Any, api_version: str) -> bool:
    """Return whether what a client says of managed fields can be read."""
    if not isinstance(entries, list):
        return False
    group = api_version.rpartition("/")[0]
    return all(
        isinstance(entry, dict)
        and entry.get("fieldsType") == "FieldsV1"
        and entry.get("operation") in {"Update", "Apply"}
        and entry.get("apiVersion", "").rpartition("/")[0] == group
        and entry["apiVersion"] == api_version
        for entry in entries
    )


class FieldManager:
    """Tracks the objects of one resource."""

    def __init__(self, schema: Schema | None, api_version: str) -> None:
        self._schema = schema or _OPEN
        self._api_version = api_version

    def created(self, obj: Object, manager: str, time: str) -> list[Object] | None:
        """Return the entries of a new object; None: it is not tracked."""
        given = obj["metadata"].get("managedFields")
        if given is not None and not is_trackable(given, self._api_version):
            return None
        fields = self._owned({}, obj)
        return [self._entry(manager, "", time, fields)] if fields else []

    def updated(
        self, old: Object, new: Object, manager: str, subresource: str, time: str
    ) -> list[Object] | None:
        """Return the entries after an update; None: the object is no longer tracked."""
        before: list[Object] | None = old["metadata"].get("managedFields")
        given = new["metadata"].get("managedFields")
        if given != before and given is not None:
            if given and not is_trackable(given, self._api_version):
                return before  # what cannot be read is as if it had not been sent
            before = given
        if before is None:
            return None
        changed = self._owned(old, new)
        removed = self._owned(new, old)
        entries = []
        mine: Object | None = None
        for entry in before:
            if _is(entry, manager, subresource):
                mine = entry
                continue
            left = _without(entry["fieldsV1"], _union(changed, removed))
            if left:
                kept = left == entry["fieldsV1"]
                entries.append(entry if kept else {**entry, "fieldsV1": left})
        own = _without(mine["fieldsV1"], removed) if mine else {}
        own = _union(own, changed)
        if own:
            touched = bool(changed or removed) or mine is None
            when = time if touched or mine is None else mine["time"]
            entries.append(self._entry(manager, subresource, when, own))
        return sorted(entries, key=_order)

    def _owned(self, old: Object, new: Object) -> Fields:
        """Return the fields of `new` that differ from `old`."""
        found: Fields = {}
        for name, value in new.items():
            if name in {"apiVersion", "kind"}:
                continue
            if name == "metadata":
                before = old.get("metadata", {})
                fields = _metadata_fields(before, value)
            else:
                schema = self._schema.properties.get(name, _OPEN)
                fields = _differences(schema, old.get(name, _ABSENT), value)
            if fields is not None:
                found[f"f:{name}"] = fields
        return found

    def _entry(self, manager: str, subresource: str, time: str, fields: Fields) -> Object:
        entry = {
            "apiVersion": self._api_version,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
            "manager": manager,
            "operation": "Update",
            "time": time,
        }
        return {**entry, "subresource": subresource} if subresource else entry


def _metadata_fields(old: Object, new: Object) -> Fields | None:
    inner: Fields = {}
    for name, value in new.items():
        if name in _UNTRACKED:
            continue
        fields = _differences(_OPEN, _keyed(name, old.get(name, _ABSENT)), _keyed(name, value))
        if fields is not None:
            inner[f"f:{name}"] = fields
    return inner or None


def _differences(schema: Schema, old: Any, new: Any) -> Fields | None:
    """Return which parts of a value are new; None: it is as it was."""
    if new == old and isinstance(new, bool) == isinstance(old, bool):
        return None
    if not isinstance(new, dict) or schema.is_atomic:
        return {}
    before: Mapping[str, Any] = old if isinstance(old, dict) else {}
    inner: Fields = {} if isinstance(old, dict) else {".": {}}
    for name, value in new.items():
        below = schema.properties.get(name) or schema.additional or _OPEN
        fields = _differences(below, before.get(name, _ABSENT), value)
        if fields is not None:
            inner[name if name.startswith(_LIST_KEYS) else f"f:{name}"] = fields
    return inner or None


def _keyed(name: str, value: Any) -> Any:
    """Return lists that are sets or maps as objects, by the keys that tell their items apart."""
    if not isinstance(value, list):
        return value
    if name == "finalizers":
        return {f"v:{_text(one)}": True for one in value}
    if name == "ownerReferences":
        return {f"k:{_text({'uid': one.get('uid')})}": one for one in value}
    return value


def _text(value: Any) -> str:
    return encode(value).decode()


def _is(entry: Object, manager: str, subresource: str) -> bool:
    return (
        entry.get("manager") == manager
        and entry.get("subresource", "") == subresource
        and entry.get("operation") == "Update"
    )


def _order(entry: Object) -> tuple[bool, str, str]:
    return entry["operation"] != "Apply", entry.get("time", ""), entry.get("manager", "")


def _union(one: Fields, other: Fields) -> Fields:
    merged = dict(one)
    for name, inner in other.items():
        merged[name] = _union(merged[name], inner) if merged.get(name) else inner
    return merged


def _without(fields: Fields, taken: Fields) -> Fields:
    """Return the fields less those that are taken; a parent goes with its last part."""
    left: Fields = {}
    for name, inner in fields.items():
        if name not in taken:
            left[name] = inner
        elif inner and taken[name]:
            rest = _without(inner, taken[name])
            if rest:
                left[name] = rest
    return left
