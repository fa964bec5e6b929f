"""The forms of an answer: objects, their metadata alone, and tables of printer columns."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from asyncjob_simulation.apiserver.encoding import encode
from asyncjob_simulation.apiserver.resources import Column, Resource

Object = dict[str, Any]

TABLE: Final = "Table"
METADATA: Final = "PartialObjectMetadata"
METADATA_LIST: Final = "PartialObjectMetadataList"

_META_VERSION: Final = "meta.k8s.io/v1"
_FORM: Final = re.compile(r";as=([A-Za-z]+)")
_PATH: Final = re.compile(r"\.([A-Za-z0-9_-]+)|\[([^\]]+)\]")
_NAME_COLUMN: Final = {
    "name": "Name",
    "type": "string",
    "format": "name",
    "description": (
        "Name must be unique within a namespace. Is required when creating resources, although "
        "some resources may allow a client to request the generation of an appropriate name "
        "automatically. Name is primarily intended for creation idempotence and configuration "
        "definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/"
        "working-with-objects/names#names"
    ),
    "priority": 0,
}


@lru_cache(maxsize=64)
def requested_form(accept: str) -> str:
    """Return the form that the first alternative of an Accept header asks for."""
    found = _FORM.search(accept.split(",", maxsplit=1)[0])
    return found.group(1) if found else ""


def metadata_only(obj: Object) -> Object:
    """Return an object without anything but its metadata."""
    return {"kind": METADATA, "apiVersion": _META_VERSION, "metadata": obj["metadata"]}


@dataclass(frozen=True, slots=True)
class Form:
    """How objects of a resource are told; `include` is what a table has of each object."""

    resource: Resource
    kind: str = ""
    include: str = "Metadata"
    now: Callable[[], float] = field(default=lambda: 0.0, compare=False)

    @property
    def name(self) -> str:
        """Return a name that differs where answers differ."""
        return f"{self.resource.version}/{self.kind}/{self.include}"

    def one(self, obj: Object) -> Object:
        """Return the answer about one object."""
        if self.kind == TABLE:
            return self.table([obj], str(obj["metadata"].get("resourceVersion", "")))
        if self.kind in {METADATA, METADATA_LIST}:
            return metadata_only(obj)
        return self._typed(obj)

    def many(self, objects: Sequence[Object], metadata: Mapping[str, Any]) -> Object:
        """Return a list."""
        told = {name: value for name, value in metadata.items() if value}
        if self.kind == TABLE:
            return {**self.table(objects, ""), "metadata": told}
        if self.kind in {METADATA, METADATA_LIST}:
            return {
                "kind": METADATA_LIST,
                "apiVersion": _META_VERSION,
                "metadata": told,
                "items": [metadata_only(obj) for obj in objects] or None,
            }
        return {
            "apiVersion": self.resource.api_version,
            "items": [self._typed(obj) for obj in objects],
            "kind": f"{self.resource.kind}List",
            "metadata": dict(metadata),
        }

    def event(self, type_: str, obj: Object, *, is_first: bool) -> bytes:
        """Return a line of a watch; only the first table has the definitions of columns."""
        shown: Object
        if type_ == "BOOKMARK" and self.kind == TABLE:
            shown = self._table_bookmark(obj)
        else:
            shown = self.one(obj)
        if self.kind == TABLE and not is_first:
            shown["columnDefinitions"] = None
        return encode({"type": type_, "object": shown}) + b"\n"

    def bookmark(self, version: int, *, ends_initial: bool = False) -> Object:
        """Return the object of a bookmark, which may say that what was there has been sent."""
        metadata: Object = {"resourceVersion": str(version)}
        if ends_initial:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        return {
            "kind": self.resource.kind,
            "apiVersion": self.resource.api_version,
            "metadata": metadata,
        }

    def _table_bookmark(self, obj: Object) -> Object:
        metadata = obj["metadata"]
        shown = metadata_only(obj) if "annotations" in metadata else None
        blank: list[Any] = ["", *(None for _ in self.resource.columns)]
        table = self.table([], metadata["resourceVersion"])
        return {**table, "rows": [{"cells": blank, "object": shown}]}

    def table(self, objects: Sequence[Object], version: str) -> Object:
        """Return a table with a row for each object."""
        return {
            "kind": TABLE,
            "apiVersion": _META_VERSION,
            "metadata": {"resourceVersion": version} if version else {},
            "columnDefinitions": [_NAME_COLUMN, *map(_definition, self.resource.columns)],
            "rows": [self._row(obj) for obj in objects],
        }

    def _row(self, obj: Object) -> Object:
        cells = [obj["metadata"]["name"]]
        cells += [self._cell(column, obj) for column in self.resource.columns]
        shown: Object | None = None
        if self.include == "Metadata":
            shown = metadata_only(obj)
        elif self.include == "Object":
            shown = self._typed(obj)
        return {"cells": cells, "object": shown}

    def _cell(self, column: Column, obj: Object) -> Any:
        value = _find(obj, _steps(column.json_path))
        if value is None:
            return None
        return _AS_CELL.get(column.type, _as_text)(value, self.now())

    def _typed(self, obj: Object) -> Object:
        if obj.get("apiVersion") == self.resource.api_version:
            return obj
        return {**obj, "apiVersion": self.resource.api_version, "kind": self.resource.kind}


def _definition(column: Column) -> Object:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


@lru_cache(maxsize=256)
def _steps(path: str) -> tuple[tuple[str, ...], ...]:
    """Return the steps of a JSONPath, each with the names of which the first that is there counts.

    Known are `.name` and `['one','other']`.
    """
    return tuple(
        (name,) if name else tuple(one.strip().strip("'\"") for one in names.split(","))
        for name, names in _PATH.findall(path)
    )


def _find(value: Any, steps: tuple[tuple[str, ...], ...]) -> Any:
    for names in steps:
        if not isinstance(value, dict):
            return None
        value = next((value[name] for name in names if name in value), None)
    return value


def _as_text(value: Any, _: float) -> Any:
    if isinstance(value, str):
        return value
    return encode(value, sort_keys=True).decode()


def _as_integer(value: Any, _: float) -> Any:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _as_number(value: Any, _: float) -> Any:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _as_boolean(value: Any, _: float) -> Any:
    return value if isinstance(value, bool) else None


def _as_age(value: Any, now: float) -> Any:
    return human_duration(now - datetime.fromisoformat(value).timestamp())


_AS_CELL: Final[Mapping[str, Callable[[Any, float], Any]]] = {
    "integer": _as_integer,
    "number": _as_number,
    "boolean": _as_boolean,
    "date": _as_age,
}

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 86_400 * 365


def human_duration(seconds: float) -> str:
    """Return a duration as kubectl shows it: two units while the larger one is small."""
    whole = int(seconds)
    if whole < 0:
        return "0s" if whole >= -1 else "<invalid>"
    for limit, unit, name, smaller, small_name in (
        (2 * _MINUTE, 1, "s", 0, ""),
        (10 * _MINUTE, _MINUTE, "m", 1, "s"),
        (3 * _HOUR, _MINUTE, "m", 0, ""),
        (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
        (2 * _DAY, _HOUR, "h", 0, ""),
        (8 * _DAY, _DAY, "d", _HOUR, "h"),
        (2 * _YEAR, _DAY, "d", 0, ""),
        (8 * _YEAR, _YEAR, "y", _DAY, "d"),
    ):
        if whole < limit:
            rest = (whole % unit) // smaller if smaller else 0
            return f"{whole // unit}{name}" + (f"{rest}{small_name}" if rest else "")
    return f"{whole // _YEAR}y"
