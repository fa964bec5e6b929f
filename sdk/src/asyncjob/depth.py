"""JSON that is nested deeper than our parser goes: read all the same, without what is too deep.

The API server takes ten thousand levels from whoever may create a job, and no schema or policy can
ask for fewer. Such a job must not stop those who list and watch all jobs.
"""

import re
from typing import Final

import orjson

from asyncjob.json_types import Json

DEEPEST: Final = 1000
"""Levels that are kept of what the parser refuses, which goes to 1,024.

Far more than can be written again (254): what was cut is never sent back as if it were whole.
"""

SHOWN: Final = 100
"""Levels that people are shown; our own clients submit 64 at most."""

CUT: Final = "(nested too deeply)"

_REFUSAL: Final = "depth limit exceeded"
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]')
_OPENING, _CLOSING = frozenset({b"{", b"["}), frozenset({b"}", b"]"})


class Shallow(dict[str, Json]):
    """An object of which something was too deep to be read."""


def loads(data: bytes) -> Json:
    """Parse JSON; an object that is too deep comes as a Shallow. Raises orjson.JSONDecodeError."""
    try:
        return orjson.loads(data)  # type: ignore[no-any-return]  # JSON is what it parses
    except orjson.JSONDecodeError as error:
        if not str(error).startswith(_REFUSAL):
            raise
    return Shallow(orjson.loads(cut_text(data, DEEPEST)))


def cut_text(data: bytes, levels: int) -> bytes:
    """Return JSON text with each object or list below so many levels replaced by null."""
    kept, depth, begin = [], 0, 0
    for token in _TOKEN.finditer(data):
        if token[0] in _OPENING:
            depth += 1
            if depth == levels + 1:
                kept += [data[begin : token.start()], b"null"]
        elif token[0] in _CLOSING:
            if depth == levels + 1:
                begin = token.end()
            depth -= 1
    return b"".join([*kept, data[begin:]])


def shown(value: Json, levels: int = SHOWN) -> Json:
    """Return a value with words in place of what lies below so many levels."""
    if not isinstance(value, dict | list | tuple):
        return value
    if not levels:
        return CUT
    if isinstance(value, dict):
        return {key: shown(one, levels - 1) for key, one in value.items()}
    return [shown(one, levels - 1) for one in value]
