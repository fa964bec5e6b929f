"""JSON text of answers, however deep an object is nested."""

import json
from typing import Any, Final

import orjson

_TOO_DEEP: Final = "Recursion limit reached"


def encode(value: Any, *, sort_keys: bool = False) -> bytes:
    """Return a value as JSON text; the fast encoder gives up at 254 levels."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS if sort_keys else None)
    except orjson.JSONEncodeError as error:
        if str(error) != _TOO_DEEP:
            raise
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)
    return text.encode()
