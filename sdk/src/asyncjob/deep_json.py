"""Reads JSON that is nested deeper than the parser can go, by cutting off what is too deep.

The API server accepts ten thousand levels from anyone who may create a job, and no schema or policy
can require fewer. Such a job must not stop those who list and watch all jobs.
"""

from array import array
from collections.abc import Iterable, Iterator
from itertools import accumulate, islice
from typing import Final

import orjson

from asyncjob.json_types import Json

MAX_PARSED_LEVELS: Final = 1000
"""Levels that are kept of what the parser refuses, which goes to 1,024.

Far more than can be written again (254): what was cut is never sent back as if it were whole.
"""

MAX_SHOWN_LEVELS: Final = 100
"""Levels that people are shown; our own clients submit 64 at most."""

TRUNCATED_TEXT: Final = "(nested too deeply)"

_DEPTH_ERROR: Final = "depth limit exceeded"
_BRACKETS: Final = b"{}[]"
_DEPTH_CHANGES: Final = bytes(
    1 if byte in b"{[" else 255 if byte in b"}]" else 0 for byte in range(256)
)
"""What each byte adds to the depth, as signed bytes: 255 is -1."""

_MASKED_BRACKETS: Final = bytes.maketrans(_BRACKETS, b"....")
_ALL_BUT_OPENING: Final = bytes(byte for byte in range(256) if byte not in b"{[")
_ALL_BUT_CLOSING: Final = bytes(byte for byte in range(256) if byte not in b"}]")
_ALL_BUT_BRACKETS_AND_QUOTES: Final = bytes(byte for byte in range(256) if byte not in b'{}[]"')
_CHUNK_BYTES: Final = 1024
_SEGMENT_BYTES: Final = 2**18
_MAX_CUTS: Final = 1000
_MIN_LEVELS: Final = 30
"""Text that crosses one level again and again costs a step of Python each time: beyond so many
times it is cut at half the levels instead, down to these. The fields we read are 10 levels deep."""


class TruncatedObject(dict[str, Json]):
    """An object of which something was too deep to be read."""


def loads(data: bytes) -> Json:
    """Parse JSON; an object that is too deep comes as a Shallow. Raises orjson.JSONDecodeError.

    What is too deep holds the caller for 30 to 60 ms per megabyte, most of it in C.
    """
    try:
        return orjson.loads(data)  # type: ignore[no-any-return]  # JSON is what it parses
    except orjson.JSONDecodeError as error:
        if not str(error).startswith(_DEPTH_ERROR):
            raise
    found: Json = orjson.loads(_truncate_to_fit(data))
    return TruncatedObject(found) if isinstance(found, dict) else found


def truncate_text(data: bytes, levels: int) -> bytes:
    """Return JSON text with each object or list below so many levels replaced by null."""
    return _replace_by_null(data, list(_find_too_deep(_mask_strings(data), levels)))


def _truncate_to_fit(data: bytes) -> bytes:
    plain, levels = _mask_strings(data), MAX_PARSED_LEVELS
    while True:
        cuts = list(islice(_find_too_deep(plain, levels), _MAX_CUTS))
        if len(cuts) < _MAX_CUTS:
            return _replace_by_null(data, cuts)
        if levels // 2 < _MIN_LEVELS:
            return _replace_by_null(data, list(_find_too_deep(plain, levels)))
        levels //= 2


def _replace_by_null(data: bytes, cuts: Iterable[tuple[int, int]]) -> bytes:
    kept, begin = [], 0
    for start, end in cuts:
        kept += [data[begin:start], b"null"]
        begin = end
    return b"".join([*kept, data[begin:]])


def _mask_strings(data: bytes) -> bytes:
    """Return text of the same length in which no string has a bracket or an escaped quote."""
    if b"\\" in data:
        data = data.replace(rb"\\", b"..").replace(rb"\"", b"..")
    blanked, inside = [], False
    for start in range(0, len(data), _SEGMENT_BYTES):
        segment = data[start : start + _SEGMENT_BYTES]
        ends_inside = inside ^ bool(segment.count(b'"') % 2)
        if _has_no_brackets_in_strings(segment, inside=inside, ends_inside=ends_inside):
            blanked.append(segment)
        else:
            blanked.append(_mask_brackets_in_strings(segment, inside=inside))
        inside = ends_inside
    return b"".join(blanked)


def _has_no_brackets_in_strings(segment: bytes, *, inside: bool, ends_inside: bool) -> bool:
    """Return whether no string has a bracket: with all else left out, each is then two quotes."""
    bones = segment.translate(None, _ALL_BUT_BRACKETS_AND_QUOTES)
    return b'"' not in (b'"' * inside + bones + b'"' * ends_inside).replace(b'""', b"")


def _mask_brackets_in_strings(segment: bytes, *, inside: bool) -> bytes:
    """Return the segment without brackets in strings, all of them at once."""
    parts, first = segment.split(b'"'), 0 if inside else 1
    if len(parts) > first:
        parts[first::2] = b'"'.join(parts[first::2]).translate(_MASKED_BRACKETS).split(b'"')
    return b'"'.join(parts)


def _find_too_deep(plain: bytes, levels: int) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each object and list below so many levels.

    Only chunks in which the depth may cross that level are gone through byte by byte.
    """
    depth, begin = 0, 0
    for start in range(0, len(plain), _CHUNK_BYTES):
        chunk = plain[start : start + _CHUNK_BYTES]
        opened = len(chunk.translate(None, _ALL_BUT_OPENING))
        closed = len(chunk.translate(None, _ALL_BUT_CLOSING))
        if depth + opened > levels and depth - closed <= levels:
            for is_begin, at in _crossings(chunk, depth, levels):
                if is_begin:
                    begin = start + at
                else:
                    yield begin, start + at + 1
        depth += opened - closed


def _crossings(chunk: bytes, depth: int, levels: int) -> Iterator[tuple[bool, int]]:
    """Yield where the depth goes beyond the levels (True), and where it comes back, in turn."""
    steps = memoryview(chunk.translate(_DEPTH_CHANGES)).cast("b")
    depths = array("i", accumulate(steps, initial=depth))
    at, beyond = 0, depth > levels
    try:
        while True:
            at = depths.index(levels if beyond else levels + 1, at)
            beyond = not beyond
            yield beyond, at - 1
    except ValueError:  # no further crossing
        return


def truncate_for_display(value: Json, levels: int = MAX_SHOWN_LEVELS) -> Json:
    """Return a value with words in place of what lies below so many levels."""
    if not isinstance(value, dict | list | tuple):
        return value
    if not levels:
        return TRUNCATED_TEXT
    if isinstance(value, dict):
        return {key: truncate_for_display(one, levels - 1) for key, one in value.items()}
    return [truncate_for_display(one, levels - 1) for one in value]
