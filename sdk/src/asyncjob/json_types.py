"""Types of plain JSON, and the narrow readers that take it apart without `Any`.

Objects from the API server are plain dicts on the hot path: validating each with pydantic would
cost more than the write it belongs to. A reader returns the value if it has the expected type
and a default otherwise, because the CRD's schema has already refused everything else.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
JsonObject: TypeAlias = Mapping[str, Json]

_EMPTY: JsonObject = {}


def as_object(value: Json) -> JsonObject:
    """Return the value if it is an object, else an empty one."""
    if type(value) is dict:  # as parsers make them; asking for a Mapping takes ten times as long
        return value
    return value if isinstance(value, Mapping) else _EMPTY


def child(obj: JsonObject, key: str) -> JsonObject:
    """Return the object under the key, or an empty one."""
    return as_object(obj.get(key))


def text(obj: JsonObject, key: str, default: str = "") -> str:
    """Return the string under the key."""
    value = obj.get(key)
    return value if isinstance(value, str) else default


def opt_text(obj: JsonObject, key: str) -> str | None:
    """Return the string under the key, or None."""
    value = obj.get(key)
    return value if isinstance(value, str) else None


def integer(obj: JsonObject, key: str, default: int = 0) -> int:
    """Return the whole number under the key."""
    value = obj.get(key)
    return value if type(value) is int else default  # True is no number


def opt_integer(obj: JsonObject, key: str) -> int | None:
    """Return the whole number under the key, or None."""
    value = obj.get(key)
    return value if type(value) is int else None


def number(obj: JsonObject, key: str, default: float = 0.0) -> float:
    """Return the number under the key as a float."""
    value = obj.get(key)
    return float(value) if isinstance(value, int | float) else default


def opt_number(obj: JsonObject, key: str) -> float | None:
    """Return the number under the key as a float, or None."""
    value = obj.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def flag(obj: JsonObject, key: str) -> bool:
    """Return whether the key is there and true."""
    return obj.get(key) is True


def items(obj: JsonObject, key: str) -> Sequence[Json]:
    """Return the list under the key, or an empty one."""
    value = obj.get(key)
    return value if isinstance(value, list | tuple) else ()


def texts(obj: JsonObject, key: str) -> tuple[str, ...]:
    """Return the strings of the list under the key."""
    return tuple(item for item in items(obj, key) if isinstance(item, str))
