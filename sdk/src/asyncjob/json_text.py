"""JSON to text and back: by orjson where it is installed, else by what pydantic brings.

Both write the same bytes, floats included: digests are taken of them, and who submits the same job
by two installations must not have two jobs. Both raise TypeError for what cannot be written, and
ValueError for text that is not JSON. What only one of them refuses, `free_json` refuses before:
integers beyond 64 bits, keys that are no strings.
"""

import json
from collections.abc import Callable
from functools import partial
from typing import Final, NoReturn

from pydantic_core import to_json

from asyncjob.json_types import Json

_Dumps = Callable[[object], bytes]
_Loads = Callable[[bytes | str], Json]

try:
    import orjson
except ModuleNotFoundError:  # the bare installation, which has the REST client alone
    _fast: tuple[_Dumps, _Dumps, _Loads] | None = None
else:
    _fast = (
        orjson.dumps,
        partial(orjson.dumps, option=orjson.OPT_SORT_KEYS),
        orjson.loads,
    )


def slow_dumps(value: object) -> bytes:
    """Return the value as JSON text, without orjson."""
    try:
        return to_json(value, inf_nan_mode="null")
    except ValueError as error:
        raise TypeError(str(error)) from None


def slow_sorted_dumps(value: object) -> bytes:
    """Return the value as JSON text in which keys are in order, without orjson."""
    return slow_dumps(_with_sorted_keys(value))


def slow_loads(text: bytes | str) -> Json:
    """Return the value of a JSON text, without orjson."""
    try:
        value: Json = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("the text is nested too deeply") from None
    return value


def _with_sorted_keys(value: object) -> object:
    if isinstance(value, dict):
        return {key: _with_sorted_keys(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_with_sorted_keys(one) for one in value]
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_chosen: Final = _fast or (slow_dumps, slow_sorted_dumps, slow_loads)

dumps: Final[_Dumps] = _chosen[0]
"""Return a value as JSON text."""

sorted_dumps: Final[_Dumps] = _chosen[1]
"""Return a value as JSON text in which keys are in order."""

loads: Final[_Loads] = _chosen[2]
"""Return the value of a JSON text."""
