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


def parse_payload(arguments: Sequence[str]) -> Json:
    """Return the payload that the words after the type make: JSON, or pairs.

    Raises ValueError that says which of the two it is not.
    """
    if all(map(is_pair, arguments)):
        return parse_pairs(arguments)
    if len(arguments) == 1:
        return parse_json(arguments[0])
    wrong = next(word for word in arguments if not is_pair(word))
    raise ValueError(f"{wrong!r} is no pair: write key=text, key:=JSON, or one JSON value")


def parse_pairs(arguments: Sequence[str]) -> dict[str, Json]:
    """Return the object of pairs."""
    payload: dict[str, Json] = {}
    for word in arguments:
        found = _PAIR.fullmatch(word)
        assert found
        key = found["key"]
        if key in payload:
            raise ValueError(f"{key!r} is given twice")
        payload[key] = (
            found["value"] if found["sign"] == "=" else _parse_pair_json(key, found["value"])
        )
    return payload


def _parse_pair_json(key: str, text: str) -> Json:
    try:
        return parse_json(text)
    except ValueError as error:
        raise ValueError(f"{key}:=… takes JSON; for text write {key}=… ({error})") from error


def parse_json(text: str) -> Json:
    """Return the value; raises ValueError in words."""
    try:
        value: Json = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{_excerpt(text)} is not JSON: {error}") from error
    except RecursionError as error:
        raise ValueError(f"{_excerpt(text)} is nested too deeply") from error
    return value


def _excerpt(text: str, max_length: int = 40) -> str:
    return repr(text if len(text) <= max_length else text[:max_length] + "…")
