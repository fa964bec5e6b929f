"""Checks free JSON (payload, checkpoint, result) before it is written.

The API server would lose digits of integers beyond 64 bits, so that they are refused here.
"""

import math
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

import orjson
from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, from_json, to_jsonable_python

from asyncjob.errors import AsyncJobError
from asyncjob.json_types import Json

MAX_BYTES: Final = 256 * 1024
"""Largest checkpoint or result kept in the job itself, unless configured otherwise."""

MAX_DEPTH: Final = 64
"""Deepest nesting; the API server's own limit lies higher, its cost does not."""

_PLACE: Final = re.compile(r" at line \d+ column \d+$")
_INT64: Final = range(-(2**63), 2**63)
_ANYTHING: Final[TypeAdapter[Any]] = TypeAdapter(Any)

_Path = tuple["_Path", str | int] | str
"""Where a value lies, from the inside outwards; put into words only once something is wrong there.

A key may be as long as a body: words for each of its many values would take minutes.
"""


class FreeJsonError(AsyncJobError):
    """The value cannot be stored as JSON."""


class TooManyBytesError(FreeJsonError):
    """The value is larger than it may be."""


def normalize(value: object, *, what: str, max_bytes: int = MAX_BYTES) -> Json:
    """Return the value as plain JSON, exactly as it will be read back.

    Pydantic models and dataclasses become objects, dates and UUIDs text. Raises FreeJsonError that
    says what cannot be stored and why: not JSON, NaN, an integer beyond 64 bits, too deep, or
    larger than `max_bytes`.
    """
    data = encode(value, what=what, max_bytes=max_bytes)
    return orjson.loads(data)  # type: ignore[no-any-return]  # parsed from our own encoding


def encode(value: object, *, what: str, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the value as JSON text; raises FreeJsonError like `normalize`."""
    plain = _plain(value, what)
    _check(plain, what, 0)
    data = _encode(plain, what)
    if len(data) > max_bytes:
        raise TooManyBytesError(f"{what} has {len(data)} bytes, the limit is {max_bytes}")
    return data


def parse(data: bytes, *, what: str, max_depth: int = MAX_DEPTH) -> Json:
    """Return the value of a JSON text from elsewhere, exactly.

    Raises FreeJsonError by the same rules as `normalize`. A text that is no JSON is not repeated in
    the message, only the place is named.
    """
    try:
        value: Json = from_json(data, allow_inf_nan=False)
    except ValueError as error:
        place = _PLACE.search(str(error))
        raise FreeJsonError(f"{what} is not JSON{place[0] if place else ''}") from None
    _check(value, what, 0, max_depth)
    return value


def dump(adapter: TypeAdapter[Any], value: object, *, what: str) -> object:
    """Return the value as JSON by its type; raises FreeJsonError where NaN would become null.

    What pydantic itself raises passes through.
    """
    plain: object = adapter.dump_python(value, mode="json", warnings="none")
    _check_nulls(adapter, value, plain, what)
    return plain


def size_of(value: Json) -> int:
    """Return how many bytes a normalized value takes."""
    return len(orjson.dumps(value))


def clean(text: str) -> str:
    """Return the text with what UTF-8 cannot encode, such as a badly named file, replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _plain(value: object, what: str) -> object:
    try:
        plain = to_jsonable_python(value)
        _check_nulls(_ANYTHING, value, plain, what)
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise FreeJsonError(f"{what} is not JSON: {error}") from error
    return plain


def _check_nulls(adapter: TypeAdapter[Any], value: object, plain: object, what: str) -> None:
    """Pydantic writes NaN as null wherever the type of a value is not declared to be a float."""
    if _has_null(plain):
        _compare(adapter.dump_python(value, warnings="none"), plain, what)


def _has_null(plain: object) -> bool:
    if isinstance(plain, dict):
        return any(map(_has_null, plain.values()))
    return any(map(_has_null, plain)) if isinstance(plain, list) else plain is None


def _compare(value: object, plain: object, path: _Path) -> None:
    if plain is None:
        _check_number(value, path)
    elif isinstance(plain, dict) and isinstance(value, Mapping):
        for item, (key, kept) in zip(value.values(), plain.items(), strict=False):
            _compare(item, kept, (path, str(key)))
    elif isinstance(plain, list) and isinstance(value, Sequence):
        for index, (item, kept) in enumerate(zip(value, plain, strict=False)):
            _compare(item, kept, (path, index))
    elif isinstance(plain, list) and isinstance(value, AbstractSet) and None in plain:
        for item in value:
            _check_number(item, path)


def _encode(plain: object, what: str) -> bytes:
    try:
        return orjson.dumps(plain)
    except TypeError as error:
        raise FreeJsonError(f"{what} is not JSON: {error}") from error


def _check(value: object, path: _Path, depth: int, max_depth: int = MAX_DEPTH) -> None:
    if depth > max_depth:
        raise FreeJsonError(f"{_words(path)} is nested deeper than {max_depth} levels")
    if isinstance(value, dict):
        for key, item in value.items():
            _check(item, (path, str(key)), depth + 1, max_depth)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check(item, (path, index), depth + 1, max_depth)
    else:
        _check_number(value, path)


def _check_number(value: object, path: _Path) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise FreeJsonError(f"{_words(path)} is {value}, which JSON does not have")
    if isinstance(value, int) and value not in _INT64:
        raise FreeJsonError(f"{_words(path)} is an integer beyond 64 bits; send it as text")


def _words(path: _Path) -> str:
    steps: list[str] = []
    while not isinstance(path, str):
        path, step = path
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return path + "".join(reversed(steps))
