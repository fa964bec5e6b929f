"""Reads and writes JSON that may be nested deeper than parser and encoder can go.

The API server accepts ten thousand levels from anyone who may create a job, and no schema or policy
can require fewer. Such a job must not stop those who list and watch all jobs: what is too deep to
be read is cut off. Less can be written than read, and what cannot be written is refused as if the
API server had refused it, with the field's name.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, islice
from typing import Final

from asyncjob.errors import InvalidError
from asyncjob.extras import needs
from asyncjob.json_types import Json, JsonObject

with needs("kubernetes"):
    import orjson

MAX_PARSED_LEVELS: Final = 1000
"""Levels that are kept of what the parser refuses, which goes to 1,024.

Text that crosses that level too often is cut higher: see `TruncatedObject.levels`.
"""

MAX_WRITTEN_LEVELS: Final = 254
"""Levels of a whole object that is written, itself the first: orjson's encoder goes no deeper.

A payload is the third level of a job and the fifth of a cron job.
"""

MAX_SHOWN_LEVELS: Final = 100
"""Levels that people are shown; our own clients submit 64 at most."""

TRUNCATED_TEXT: Final = "(nested too deeply)"

_DEPTH_ERROR: Final = "depth limit exceeded"
_ENCODER_DEPTH_ERROR: Final = "Recursion limit reached"
_UNTYPED_FIELDS: Final = frozenset({"payload", "checkpoint", "result"})
"""Where the schema ends: what lies below is the user's own, and its names say nothing to others."""

_MAX_NAMED_STEPS: Final = 5
_MAX_NAME_LENGTH: Final = 63
"""Characters of a name that a message repeats: a key may be as long as a body."""

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
"""Text that crosses one level again and again costs a step of Python each time: beyond this many
times it is cut at half the levels instead, down to these. The fields we read are 10 levels deep."""


class TruncatedObject(dict[str, Json]):
    """An object of which something was too deep to be read: what lay below `levels` is null."""

    levels: int = MAX_PARSED_LEVELS


def loads(data: bytes) -> Json:
    """Parse JSON; an object that is too deep comes as a TruncatedObject.

    Raises orjson.JSONDecodeError.

    What is too deep holds the caller for 30 to 60 ms per megabyte, most of it in C.
    """
    try:
        return orjson.loads(data)  # type: ignore[no-any-return]  # JSON is what it parses
    except orjson.JSONDecodeError as error:
        if not str(error).startswith(_DEPTH_ERROR):
            raise
    kept, levels = truncate_text(data, MAX_PARSED_LEVELS)
    found: Json = orjson.loads(kept)
    if not isinstance(found, dict):
        return found
    truncated = TruncatedObject(found)
    truncated.levels = levels
    return truncated


def encode(body: Json) -> bytes:
    """Return a body as JSON text; raises InvalidError, which names the field, if it is too deep."""
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError as error:
        if str(error) != _ENCODER_DEPTH_ERROR:
            raise
    raise InvalidError(
        f"{_find_too_deep_field(body) or 'the object'} is nested too deeply to be written: an "
        f"object has at most {MAX_WRITTEN_LEVELS} levels, itself the first; make it flatter, or "
        "keep the inner part as text"
    )


def is_deeper(value: Json, levels: int) -> bool:
    """Return whether a value has more than this many levels, of which the encoder counts 254."""
    wrapped = value
    for _ in range(MAX_WRITTEN_LEVELS - levels):
        wrapped = [wrapped]
    try:
        orjson.dumps(wrapped)
    except orjson.JSONEncodeError as error:
        return str(error) == _ENCODER_DEPTH_ERROR
    return False


def levels_read(obj: JsonObject) -> int | None:
    """Return how many levels of an object were read, itself the first; None if all were."""
    return obj.levels if isinstance(obj, TruncatedObject) else None


def may_be_cut(obj: JsonObject, part: JsonObject) -> bool:
    """Return whether something was cut off in part of an object, which has the object's levels.

    What was cut is as deep as the object was read. It is compared no further than can be written.
    """
    levels = levels_read(obj)
    return levels is not None and is_deeper(part, levels - 1)


def require_whole(obj: JsonObject, copied: JsonObject | None = None) -> None:
    """Raise InvalidError for an object that was cut: its copy would not be what it seems.

    `copied` is what is taken of it, on the levels where it was, if not all is.
    """
    if isinstance(obj, TruncatedObject) and (copied is None or may_be_cut(obj, copied)):
        raise InvalidError(
            f"the object is nested too deeply to be read as a whole ({obj.levels} levels were), so "
            "it is not copied; make it flatter, or keep the inner part as text"
        )


def _find_too_deep_field(body: Json) -> str:
    """Return which field is too deep, down to where the schema ends.

    The encoder itself looks: going through all values in Python would hold an event loop.
    """
    steps: list[str] = []
    value, room = body, MAX_WRITTEN_LEVELS
    for _ in range(_MAX_NAMED_STEPS):
        for name, part, levels in _named_parts(value):
            if is_deeper(part, room - levels):
                steps.append(name[:_MAX_NAME_LENGTH])
                value, room = part, room - levels
                break
        else:
            break
        if name.rpartition(".")[2] in _UNTYPED_FIELDS:
            break
    return ".".join(steps)


def _named_parts(value: Json) -> Iterator[tuple[str, Json, int]]:
    """Yield each part with its name, and how many levels lie above it in the value."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield name, part, 1
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            if isinstance(part, Mapping) and "op" in part:  # of a JSON Patch: its path is the field
                yield str(part.get("path")).strip("/").replace("/", "."), part.get("value"), 2
            else:
                yield str(number), part, 1


def truncate_text(data: bytes, levels: int) -> tuple[bytes, int]:
    """Return JSON text with each object or list below this many levels replaced by null.

    The second value is how many levels are left: fewer than asked for if cutting there takes long.
    """
    plain = _mask_strings(data)
    while True:
        cuts = list(islice(_find_too_deep(plain, levels), _MAX_CUTS))
        if len(cuts) < _MAX_CUTS:
            return _replace_by_null(data, cuts), levels
        if levels // 2 < _MIN_LEVELS:
            return _replace_by_null(data, list(_find_too_deep(plain, levels))), levels
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
    """Yield begin and end of each object and list below this many levels.

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
    """Return a value with words in place of what lies below this many levels."""
    if not isinstance(value, dict | list | tuple):
        return value
    if not levels:
        return TRUNCATED_TEXT
    if isinstance(value, dict):
        return {key: truncate_for_display(one, levels - 1) for key, one in value.items()}
    return [truncate_for_display(one, levels - 1) for one in value]
