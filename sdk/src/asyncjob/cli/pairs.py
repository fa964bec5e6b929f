"""A payload written as pairs: `to=a@b.example` is text, `count:=3` is JSON. Pure."""

import json
import re
from collections.abc import Sequence
from typing import Final

from asyncjob.json_types import Json

_PAIR: Final = re.compile(r"(?P<key>[^=:\s{\[\"][^=\s]*?)(?P<sign>:?=)(?P<value>.*)", re.DOTALL)


def is_pair(text: str) -> bool:
    """Return whether that is a pair, and not JSON."""
    return _PAIR.fullmatch(text) is not None


def payload_of(words: Sequence[str]) -> Json:
    """Return the payload that the words after the type make: JSON, or pairs.

    Raises ValueError that says which of the two it is not.
    """
    if all(map(is_pair, words)):
        return from_pairs(words)
    if len(words) == 1:
        return from_json(words[0])
    wrong = next(word for word in words if not is_pair(word))
    raise ValueError(f"{wrong!r} is no pair: write key=text, key:=JSON, or one JSON value")


def from_pairs(words: Sequence[str]) -> dict[str, Json]:
    """Return the object of pairs."""
    payload: dict[str, Json] = {}
    for word in words:
        found = _PAIR.fullmatch(word)
        assert found
        key = found["key"]
        if key in payload:
            raise ValueError(f"{key!r} is given twice")
        payload[key] = found["value"] if found["sign"] == "=" else _json(key, found["value"])
    return payload


def _json(key: str, text: str) -> Json:
    try:
        return from_json(text)
    except ValueError as error:
        raise ValueError(f"{key}:=… takes JSON; for text write {key}=… ({error})") from error


def from_json(text: str) -> Json:
    """Return the value; raises ValueError in words."""
    try:
        value: Json = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{_short(text)} is not JSON: {error}") from error
    except RecursionError as error:
        raise ValueError(f"{_short(text)} is nested too deeply") from error
    return value


def _short(text: str, room: int = 40) -> str:
    return repr(text if len(text) <= room else text[:room] + "…")
