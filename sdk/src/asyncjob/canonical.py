"""One text for each JSON value, so that a digest tells whether two values are the same.

The same means what it means to the API server: order of keys and `1.0` for `1` make no difference.
Texts are compared as they are, without Unicode normalisation.
"""

import base64
import hashlib
from collections.abc import Mapping
from typing import Final

import orjson

from asyncjob.json_types import Json
from asyncjob.levels import iter_levels, types_in

SHORT_DIGEST_LENGTH: Final = 16
"""Characters of a digest that is part of a name: 80 bits."""

_INT64: Final = range(-(2**63), 2**63)
_CANONICAL_TYPES: Final = frozenset({dict, list, str, int, bool, type(None)})


def canonical_json(value: Json) -> bytes:
    """Return the value's one text; it has to be storable as `asyncjob.free_json` checks it."""
    same = value if _is_canonical(value) else _canonical_value(value)
    return orjson.dumps(same, option=orjson.OPT_SORT_KEYS)


def digest(value: Json, length: int = SHORT_DIGEST_LENGTH) -> str:
    """Return so many characters, a-z and 2-7, that follow from the value; 52 are all there are."""
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
