"""Where an installed object is not as this release has it. Pure.

The API server adds defaults: what we say has to be there, what we do not say may be.
"""

from collections.abc import Iterator, Mapping, Sequence

from asyncjob.json_types import Json

_NAME_KEYS = ("name", "jsonPath")


def differences(expected: Json, actual: Json, path: str = "") -> Iterator[str]:
    """Yield the paths at which the actual one lacks or contradicts what is expected."""
    if isinstance(expected, Mapping):
        yield from _object_differences(expected, actual, path)
    elif isinstance(expected, Sequence) and not isinstance(expected, str):
        yield from _list_differences(expected, actual, path)
    elif expected != actual:
        yield path or "."


def _object_differences(expected: Mapping[str, Json], actual: Json, path: str) -> Iterator[str]:
    if not isinstance(actual, Mapping):
        yield path or "."
        return
    for key, value in expected.items():
        yield from differences(value, actual.get(key), f"{path}.{key}" if path else key)


def _list_differences(expected: Sequence[Json], actual: Json, path: str) -> Iterator[str]:
    there = actual if isinstance(actual, list) else []
    if len(there) != len(expected):
        yield f"{path} ({len(there)} instead of {len(expected)})"
        return
    for number, (one, other) in enumerate(zip(expected, there, strict=True)):
        yield from differences(one, other, f"{path}[{_item_name(one, number)}]")


def _item_name(item: Json, number: int) -> str:
    said = [item[key] for key in _NAME_KEYS if key in item] if isinstance(item, Mapping) else []
    return str(said[0] if said else number)
