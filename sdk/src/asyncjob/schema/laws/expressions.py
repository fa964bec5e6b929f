"""The short names that laws are written with, and small pieces of CEL."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

_SHORT_NAMES: Final[Mapping[str, str]] = {
    "now": "object.status",
    "was": "oldObject.status",
    "spec": "object.spec",
    "spec_was": "oldObject.spec",
    "moved": "(oldObject.status.phase != object.status.phase)",
    "claimed": "(oldObject.status.phase == 'Queued' && object.status.phase == 'Running')",
    "redriven": "(oldObject.status.phase == 'DeadLetter' && object.status.phase == 'Queued')",
    "finished": "(object.status.phase in ['Succeeded', 'DeadLetter', 'Cancelled'])",
}
"""In a policy; `now` and `was` are the new and the old status."""

_TOKEN: Final = re.compile(
    rf"""'(?:[^'\\]|\\.)*'|(?<![\w.?])(?:{"|".join(_SHORT_NAMES)})\b(?!\s*\()"""
)


def expand_names(expression: str) -> str:
    """Return the CEL with its short names written out, texts left alone."""
    return _TOKEN.sub(lambda found: _SHORT_NAMES.get(found[0], found[0]), expression)


def cel_string(value: str) -> str:
    """Return a CEL string."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def cel_list(values: Iterable[str]) -> str:
    """Return a CEL list of strings."""
    return f"[{', '.join(cel_string(value) for value in values)}]"


def cel_and(expressions: Iterable[str]) -> str:
    """Return the conjunction; each part is put in brackets."""
    return " && ".join(f"({expression})" for expression in expressions)


def unchanged(field: str) -> str:
    """Return that a field of the status is as it was, absence included."""
    return f"now.?{field} == was.?{field}"


def unchanged_json(parent: str, field: str) -> str:
    """Return that free JSON is as it was; no schema tells the API server of its type."""
    old = {"now": "was", "spec": "spec_was"}[parent]
    return f"dyn({parent}).?{field} == dyn({old}).?{field}"
