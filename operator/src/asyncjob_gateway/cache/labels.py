"""Label selectors, as kubectl takes them: `a=b,c!=d,e in (x,y),f notin (z),g,!h`."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from asyncjob.rest.problem import FieldProblem
from asyncjob_gateway import kinds
from asyncjob_gateway.errors import RefusedError

Labels = Mapping[str, str]
LabelTest = Callable[[Labels], bool]

_KEY: Final = r"(?P<key>[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?)"
_VALUE: Final = r"[A-Za-z0-9]?[A-Za-z0-9._-]*"
_REQUIREMENT_SEPARATOR: Final = re.compile(r",(?![^()]*\))")
_REQUIREMENTS: Final = (
    ("equal", re.compile(rf"{_KEY}\s*==?\s*(?P<value>{_VALUE})")),
    ("differs", re.compile(rf"{_KEY}\s*!=\s*(?P<value>{_VALUE})")),
    ("in", re.compile(rf"{_KEY}\s+in\s*\((?P<value>[^()]*)\)")),
    ("notin", re.compile(rf"{_KEY}\s+notin\s*\((?P<value>[^()]*)\)")),
    ("absent", re.compile(rf"!\s*{_KEY}")),
    ("present", re.compile(_KEY)),
)


def parse_label_selector(text: str, field: str) -> LabelTest:
    """Return the test; raises RefusedError, naming the field, where it is no selector."""
    tests = [_parse_requirement(part.strip(), field) for part in _REQUIREMENT_SEPARATOR.split(text)]
    return lambda labels: all(test(labels) for test in tests)


def _parse_requirement(part: str, field: str) -> LabelTest:
    for name, pattern in _REQUIREMENTS:
        found = pattern.fullmatch(part)
        if found:
            return _label_test(name, found["key"], found.groupdict().get("value") or "")
    detail = f"{part!r} is no part of a label selector, such as team=mail, tier in (a,b) or !old"
    raise RefusedError(kinds.INVALID, detail, errors=[FieldProblem(field=field, detail=detail)])


def _label_test(name: str, key: str, value: str) -> LabelTest:
    values = frozenset(item.strip() for item in value.split(","))
    match name:
        case "equal" | "in":
            return lambda labels: labels.get(key) in values
        case "differs" | "notin":
            return lambda labels: labels.get(key) not in values
        case "absent":
            return lambda labels: key not in labels
        case _:
            return lambda labels: key in labels
