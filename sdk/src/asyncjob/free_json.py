"""Free JSON (payload, checkpoint, result): checked before it is written, and in one canonical form.

The API server loses digits of integers beyond 64 bits, so these are refused here. Large values are
walked level by level: a Python call for each value would hold an event loop for seconds. The
canonical form gives equal values equal digests; equal means what it means to the API server, so the
order of keys and `1.0` for `1` make no difference, and text is compared without Unicode
normalisation.
"""

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, islice
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, from_json, to_jsonable_python

from asyncjob.errors import AsyncJobError
from asyncjob.json_text import dumps, loads, sorted_dumps
from asyncjob.json_types import Json


def iter_levels(value: object) -> Iterator[list[object]]:
    """Yield the values of each level, from the outermost on."""
    level = [value]
    while level:
        yield level
        holders = [one for one in level if isinstance(one, dict | list)]
        level = list(chain.from_iterable(map(_children_of, holders)))


def types_in(level: list[object]) -> set[type]:
    """Return the types of the values of one level."""
    return set(map(type, level))


def _children_of(container: dict[object, object] | list[object]) -> Iterable[object]:
    return container.values() if isinstance(container, dict) else container


MAX_STORED_BYTES: Final = 256 * 1024
"""Largest checkpoint or result kept in the job itself, unless configured otherwise."""

MAX_DEPTH: Final = 64
"""Deepest nesting; the API server's own limit lies higher, its cost does not."""

_DEPTH_ERRORS: Final = ("recursion limit exceeded", "Maximum serialization depth exceeded")
"""What pydantic says of JSON below 200 levels, and of values below 254."""

_POSITION: Final = re.compile(r" at line \d+ column \d+$")
_CONTAINER_COST: Final = 5
"""What an object or list costs, in plain values: measured, to parse, check and copy."""

_MAX_KEY_LENGTH: Final = 63
"""Characters of a key that a message repeats: it may be as long as a body."""

_INT64: Final = range(-(2**63), 2**63)
_PLAIN_TYPES: Final = frozenset({dict, list, str, int, float, bool, type(None)})
_ANY_ADAPTER: Final[TypeAdapter[Any]] = TypeAdapter(Any)

_Path = tuple["_Path", str | int] | str
"""Where a value lies, from the inside outwards; put into words only once something is wrong there.

A key may be as long as a body: words for each of its many values would take minutes.
"""


class FreeJsonError(AsyncJobError):
    """The value cannot be stored as JSON."""

    code = "malformed"


class TooManyBytesError(FreeJsonError):
    """The value is larger than it may be."""

    code = "too-large"


class TooManyValuesError(FreeJsonError):
    """The text holds more values than it may."""

    code = "too-large"


def normalize(value: object, *, what: str, max_bytes: int = MAX_STORED_BYTES) -> Json:
    """Return the value as plain JSON, exactly as it will be read back.

    Pydantic models and dataclasses become objects, dates and UUIDs text. Raises FreeJsonError that
    says what cannot be stored and why: not JSON, NaN, an integer beyond 64 bits, too deep, or
    larger than `max_bytes`.
    """
    data = encode(value, what=what, max_bytes=max_bytes)
    return loads(data)


def encode(value: object, *, what: str, max_bytes: int = MAX_STORED_BYTES) -> bytes:
    """Return the value as JSON text; raises FreeJsonError like `normalize`."""
    plain = _to_plain(value, what)
    _check_storable(plain, what)
    data = _encode(plain, what)
    if len(data) > max_bytes:
        raise TooManyBytesError(f"{what} has {len(data)} bytes, the limit is {max_bytes}")
    return data


def parse(
    data: bytes,
    *,
    what: str,
    max_depth: int = MAX_DEPTH,
    max_values: int | None = None,
    unique_keys: bool = False,
) -> Json:
    """Return the value of a JSON text from elsewhere, exactly.

    Raises FreeJsonError by the same rules as `normalize`, and TooManyValuesError before a text of
    more than `max_values` values is read at all. With `unique_keys` an object that has a key twice
    is refused as well; otherwise its last value counts. A text that is no JSON is not repeated in
    the message, only the place is named.
    """
    if max_values is not None and _costs_more_than(data, max_values):
        counted = f"an object or list counts as {_CONTAINER_COST}"
        raise TooManyValuesError(f"{what} has more than {max_values:,} values ({counted})")
    try:
        value: Json = from_json(data, allow_inf_nan=False)
    except ValueError as error:
        _check_depth_error(error, what, max_depth)
        place = _POSITION.search(str(error))
        raise FreeJsonError(f"{what} is not JSON{place[0] if place else ''}") from None
    _check_storable(value, what, max_depth)
    if unique_keys and _has_repeated_keys(data, value):
        refuse_repeated_keys(data, what=what)
    return value


def refuse_repeated_keys(data: bytes | str, *, what: str) -> None:
    """Raise FreeJsonError that names the first key that an object of a JSON text has twice."""

    def check(pairs: list[tuple[str, object]]) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                shown = json.dumps(key[:_MAX_KEY_LENGTH], ensure_ascii=False)
                raise FreeJsonError(f"{what} has the key {shown} twice in one object")
            seen.add(key)

    json.loads(data, object_pairs_hook=check)


def dump(adapter: TypeAdapter[Any], value: object, *, what: str) -> object:
    """Return the value as JSON by its type.

    Raises FreeJsonError for what is too deep, and where NaN would become null. What else pydantic
    itself raises passes through.
    """
    try:
        plain: object = adapter.dump_python(value, mode="json", warnings="none")
    except (ValueError, RecursionError) as error:
        _check_depth_error(error, what)
        raise
    _check_lost_numbers(adapter, value, plain, what)
    return plain


def size_of(value: Json) -> int:
    """Return how many bytes a normalized value takes."""
    return len(dumps(value))


def is_too_deep(value: Json, max_depth: int = MAX_DEPTH) -> bool:
    """Return whether a value is nested deeper than this, as `normalize` counts."""
    return next(islice(iter_levels(value), max_depth + 1, None), None) is not None


def is_same_json(one: Json, other: Json) -> bool:
    """Return whether two values are the same JSON: 1 and 1.0 are, 1 and true are not.

    It goes as deep as both of them do, so one of them has to be checked.
    """
    match one, other:
        case dict(), dict():
            names = one.keys() == other.keys()
            return names and all(is_same_json(value, other[name]) for name, value in one.items())
        case list(), list():
            return len(one) == len(other) and all(map(is_same_json, one, other))
    return one == other and isinstance(one, bool) is isinstance(other, bool)


def replace_unencodable(text: str) -> str:
    """Return the text with what UTF-8 cannot encode, such as a badly named file, replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _to_plain(value: object, what: str) -> object:
    try:
        plain = to_jsonable_python(value)
        _check_lost_numbers(_ANY_ADAPTER, value, plain, what)
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        _check_depth_error(error, what)
        raise FreeJsonError(f"{what} is not JSON: {error}") from error
    return plain


def _check_depth_error(error: Exception, what: str, max_depth: int = MAX_DEPTH) -> None:
    """Raise FreeJsonError in words if it is its depth that pydantic does not take."""
    if isinstance(error, RecursionError) or any(words in str(error) for words in _DEPTH_ERRORS):
        raise FreeJsonError(f"{what} is nested deeper than {max_depth} levels") from None


def _has_repeated_keys(data: bytes, value: Json) -> bool:
    """Return whether a JSON text has more keys than its value: of keys given twice one is left.

    A colon outside of strings is a key; with those in strings there may only seem to be more.
    """
    kept = sum(len(one) for level in iter_levels(value) for one in level if isinstance(one, dict))
    return data.count(b":") > kept and _outside_strings(_without_escapes(data)).count(b":") > kept


def _without_escapes(data: bytes) -> bytes:
    """Return JSON text in which each quotation mark begins or ends a string."""
    return data.replace(rb"\\", b"").replace(rb"\"", b"")


def _outside_strings(unescaped: bytes) -> bytes:
    return b"".join(unescaped.split(b'"')[::2])


def _costs_more_than(data: bytes, max_values: int) -> bool:
    """Return whether a JSON text holds more values, an object or list counted as five.

    What it costs is in the number of its values, not of its bytes: a million empty lists take
    a second and tens of megabytes, a text of the same length a millisecond. Hence they are counted
    before they exist.
    """
    if _cost(data) <= max_values:
        return False
    unescaped = _without_escapes(data)
    if unescaped.count(b'"') > 4 * max_values:  # two for each text, and each value may have a key
        return True
    return _cost(_outside_strings(unescaped)) > max_values


def _cost(data: bytes) -> int:
    return 1 + data.count(b",") + _CONTAINER_COST * (data.count(b"[") + data.count(b"{"))


def _check_lost_numbers(adapter: TypeAdapter[Any], value: object, plain: object, what: str) -> None:
    """Pydantic writes NaN as null wherever the type of a value is not declared to be a float."""
    if not any(type(None) in types_in(level) for level in iter_levels(plain)):
        return
    dumped = adapter.dump_python(value, warnings="none")
    if not _is_plain(dumped):
        _compare_numbers(dumped, plain, what)


def _is_plain(value: object) -> bool:
    """Return whether it is JSON already, so that no null in it was something else before."""
    for level in iter_levels(value):
        found = types_in(level)
        if not found <= _PLAIN_TYPES or (
            float in found and not _all_finite(_values_of_type(float, level))
        ):
            return False
    return True


def _compare_numbers(value: object, plain: object, path: _Path) -> None:
    if plain is None:
        _check_number(value, path)
    elif isinstance(plain, dict) and isinstance(value, Mapping):
        for item, (key, kept) in zip(value.values(), plain.items(), strict=False):
            _compare_numbers(item, kept, (path, str(key)))
    elif isinstance(plain, list) and isinstance(value, Sequence):
        for index, (item, kept) in enumerate(zip(value, plain, strict=False)):
            _compare_numbers(item, kept, (path, index))
    elif isinstance(plain, list) and isinstance(value, AbstractSet) and None in plain:
        for item in value:
            _check_number(item, path)


def _encode(plain: object, what: str) -> bytes:
    try:
        return dumps(plain)
    except TypeError as error:
        raise FreeJsonError(f"{what} is not JSON: {error}") from error


def _check_storable(value: object, what: str, max_depth: int = MAX_DEPTH) -> None:
    """Raise FreeJsonError where something cannot be stored."""
    above: list[list[object]] = []
    for level in iter_levels(value):
        above.append(level)
        if len(above) > max_depth + 1:
            too_deep = _dotted_path(_path_to(above, 0, what))
            raise FreeJsonError(f"{too_deep} is nested deeper than {max_depth} levels")
        if not all(_all_storable(kind, level) for kind in types_in(level)):
            for index, one in enumerate(level):
                if not _is_storable(one):
                    _check_number(one, _path_to(above, index, what))


def _values_of_type(kind: type, level: list[object]) -> list[Any]:
    return [one for one in level if type(one) is kind]


def _all_storable(kind: type, level: list[object]) -> bool:
    if issubclass(kind, float):
        return _all_finite(_values_of_type(kind, level))
    if not issubclass(kind, int) or kind is bool:
        return True
    numbers = _values_of_type(kind, level)
    return min(numbers) in _INT64 and max(numbers) in _INT64


def _all_finite(numbers: list[float]) -> bool:
    return all(map(math.isfinite, numbers))


def _is_storable(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or value in _INT64


def _path_to(above: list[list[object]], index: int, what: str) -> _Path:
    """Return where the value of this index in the last level lies."""
    steps: list[str | int] = []
    for level in reversed(above[:-1]):
        for place, holder in enumerate(level):
            if isinstance(holder, dict | list):
                if index < len(holder):
                    steps.append(str(list(holder)[index]) if isinstance(holder, dict) else index)
                    index = place
                    break
                index -= len(holder)
    path: _Path = what
    for step in reversed(steps):
        path = (path, step)
    return path


def _check_number(value: object, path: _Path) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise FreeJsonError(f"{_dotted_path(path)} is {value}, which JSON does not have")
    if isinstance(value, int) and value not in _INT64:
        raise FreeJsonError(f"{_dotted_path(path)} is an integer beyond 64 bits; send it as text")


def _dotted_path(path: _Path) -> str:
    steps: list[str] = []
    while not isinstance(path, str):
        path, step = path
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return path + "".join(reversed(steps))


SHORT_DIGEST_LENGTH: Final = 16
"""Characters of a digest that is part of a name: 80 bits."""


_CANONICAL_TYPES: Final = frozenset({dict, list, str, int, bool, type(None)})


def canonical_json(value: Json) -> bytes:
    """Return the value's one text; it has to be storable as `asyncjob.free_json` checks it."""
    same = value if _is_canonical(value) else _canonical_value(value)
    return sorted_dumps(same)


def digest(value: Json, length: int = SHORT_DIGEST_LENGTH) -> str:
    """Return this many characters, a-z and 2-7, that follow from the value; 52 is the most."""
    whole = base64.b32encode(hashlib.sha256(canonical_json(value)).digest()).decode()
    return whole[:length].lower()


def _is_canonical(value: Json) -> bool:
    """Return whether nothing in it can be written in two ways; most values are so."""
    return all(types_in(level) <= _CANONICAL_TYPES for level in iter_levels(value))


def _canonical_value(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {key: _canonical_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical_value(item) for item in value]
    if isinstance(value, float) and value.is_integer() and int(value) in _INT64:
        return int(value)
    return value
