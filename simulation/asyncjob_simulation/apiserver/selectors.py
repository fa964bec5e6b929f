"""Label and field selectors: parsed once, then asked about each object."""

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any, Final

from asyncjob_simulation.apiserver.errors import bad_request

Object = dict[str, Any]
Predicate = Callable[[Object], bool]

_SET: Final = re.compile(r"^(\S+)\s+(in|notin)\s*\(([^)]*)\)$")
_SPLIT: Final = re.compile(r",(?![^(]*\))")
_KEY: Final = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$")
_NO_LABELS: Final[dict[str, str]] = {}


def everything(_: Object) -> bool:
    """Select each object."""
    return True


@lru_cache(maxsize=256)
def label_selector(text: str) -> Predicate:
    """Return whether labels are selected: `a=b`, `a!=b`, `a`, `!a`, `a in (b,c)`, `a notin (b)`."""
    if not text.strip():
        return everything
    terms = [_label_term(term.strip()) for term in _SPLIT.split(text)]

    def selects(obj: Object) -> bool:
        labels = obj["metadata"].get("labels") or _NO_LABELS
        return all(term(labels) for term in terms)

    return selects


def _label_term(term: str) -> Callable[[dict[str, str]], bool]:
    if found := _SET.match(term):
        key, kind, listed = found.groups()
        values = frozenset(value.strip() for value in listed.split(","))
        if kind == "in":
            return lambda labels: key in labels and labels[key] in values
        return lambda labels: labels.get(key) not in values
    for sign, equal in (("!=", False), ("==", True), ("=", True)):
        if sign in term:
            key, _, value = (part.strip() for part in term.partition(sign))
            _check_key(key)
            return lambda labels: (labels.get(key) == value) is equal
    key = term.removeprefix("!")
    _check_key(key)
    return (lambda labels: key not in labels) if term.startswith("!") else lambda x: key in x


def _check_key(key: str) -> None:
    if not _KEY.match(key):
        found = key.rsplit(maxsplit=1)[-1] if key.split() else ""
        raise bad_request(
            f"unable to parse requirement: found '{found}', expected: in, notin, =, ==, !=, gt, lt"
        )


def field_selector(text: str, selectable: Collection[str] | None) -> Predicate:
    """Return whether fields are selected; `selectable` ones, or any if that is None."""
    return _field_selector(text, None if selectable is None else frozenset(selectable))


@lru_cache(maxsize=256)
def _field_selector(text: str, selectable: frozenset[str] | None) -> Predicate:
    if not text:
        return everything
    terms = [_field_term(term, selectable) for term in text.split(",")]

    def selects(obj: Object) -> bool:
        return all(
            _field(obj, steps) == value if equal else _field(obj, steps) != value
            for steps, value, equal in terms
        )

    return selects


def _field_term(term: str, selectable: frozenset[str] | None) -> tuple[tuple[str, ...], str, bool]:
    key, sign, value = _divided(term)
    if selectable is not None and key not in selectable | {"metadata.name", "metadata.namespace"}:
        raise bad_request(f"field label not supported: {key}")
    return tuple(key.split(".")), value, sign != "!="


def _divided(term: str) -> tuple[str, str, str]:
    for sign in ("!=", "==", "="):
        if sign in term:
            key, _, value = term.partition(sign)
            return key, sign, value
    raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")


def _field(obj: Any, steps: tuple[str, ...]) -> str:
    """Return a field as selectors see it: as text, empty where there is none."""
    for step in steps:
        obj = obj.get(step) if isinstance(obj, dict) else None
    if obj is None:
        return ""
    if isinstance(obj, bool):
        return str(obj).lower()
    return str(obj)
