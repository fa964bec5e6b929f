"""Turns what a server sent into a result of bounded size. Pure."""

import base64
import codecs
import json
from collections.abc import Mapping

from asyncjob.free_json import FreeJsonError, normalize, replace_unencodable
from asyncjob.json_types import Json
from asyncjob_worker.builtin.bounded import Head, fit_json
from asyncjob_worker.builtin.web.payload import BodyFormat, HttpAnswer

KEPT_HEADERS = (
    "cache-control",
    "content-language",
    "content-location",
    "content-type",
    "date",
    "etag",
    "last-modified",
    "link",
    "location",
    "retry-after",
    "traceparent",
    "x-correlation-id",
    "x-request-id",
)
REJECTED_CHARSETS = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined"}
)
"""Python's own, for anything but text on the wire; punycode takes seconds for a long body."""

MAX_HEADER = 1024
MAX_URL = 8192


def build_answer(
    status: int, url: str, headers: Mapping[str, str], body: Head, *, limit: int, size: int | None
) -> HttpAnswer:
    """Return the result; `size` is the length of the whole body in bytes, if it is known."""
    format_, value, is_cut = _decode_body(body, headers.get("content-type", ""), limit)
    return HttpAnswer(
        status=status,
        url=url[:MAX_URL],
        headers={
            key: replace_unencodable(headers[key][:MAX_HEADER])
            for key in KEPT_HEADERS
            if key in headers
        },
        body_format=format_,
        body=value,
        truncated=is_cut,
        size=size,
    )


def excerpt(body: Head, content_type: str, length: int) -> str:
    """Return the beginning of the body on one line, for a message; empty if it is no text."""
    text = _decode_text(body, content_type)
    return " ".join((text or "").split())[:length]


def _decode_body(body: Head, content_type: str, limit: int) -> tuple[BodyFormat, Json, bool]:
    if not body.size:
        return "none", None, False
    text = _decode_text(body, content_type)
    if text is None:
        return _as_base64(body, limit)
    if "json" in content_type and not body.is_truncated:
        try:
            return "json", normalize(json.loads(text), what="the body", max_bytes=limit), False
        except (ValueError, RecursionError, FreeJsonError):
            pass  # stored as the text it is
    kept = fit_json(text, limit + 2)
    return "text", kept, body.is_truncated or len(kept) < len(text)


def _as_base64(body: Head, limit: int) -> tuple[BodyFormat, Json, bool]:
    room = limit // 4 * 3
    return "base64", base64.b64encode(body.data[:room]).decode(), body.size > room


def _decode_text(body: Head, content_type: str) -> str | None:
    """Return the bytes as text, in the charset they claim; None if they are not."""
    decoder = codecs.getincrementaldecoder(_charset(content_type))()
    try:
        return replace_unencodable(decoder.decode(body.data, final=not body.is_truncated))
    except ValueError:
        return None


def _charset(content_type: str) -> str:
    """Return the claimed charset if it is one; Python's codecs include others, such as zlib."""
    _, _, after = content_type.lower().partition("charset=")
    charset = after.partition(";")[0].strip(" \"'")
    try:
        b" ".decode(charset, "ignore")
        return "utf-8" if codecs.lookup(charset).name in REJECTED_CHARSETS else charset
    except (LookupError, ValueError):
        return "utf-8"
