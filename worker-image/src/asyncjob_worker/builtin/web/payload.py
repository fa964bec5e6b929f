"""Payload and result of `http`. Pure."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue, field_validator

from asyncjob_worker.builtin.model import BuiltInModel
from asyncjob_worker.builtin.web.hosts import parse_url
from asyncjob_worker.builtin.web.statuses import Statuses

CONNECTION_HEADERS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Belong to the connection; a `Host` of the job's own would name another than was checked."""

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,8192}")


def _check_name(name: str) -> str:
    if not _TOKEN.fullmatch(name):
        raise ValueError("this is no name of a header")
    if name.lower() in CONNECTION_HEADERS:
        raise ValueError("this header is the worker's own matter")
    return name


def _check_value(value: str) -> str:
    if not _VALUE.fullmatch(value):
        raise ValueError("a header holds one line of at most 8192 Latin-1 characters")
    return value


BodyFormat = Literal["none", "json", "text", "base64"]
HeaderName = Annotated[str, AfterValidator(_check_name)]
HeaderValue = Annotated[str, AfterValidator(_check_value)]


class HttpCall(BuiltInModel):
    """What to call, and what to expect."""

    url: str = Field(max_length=8192)
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = "GET"
    headers: dict[HeaderName, HeaderValue] = Field(default_factory=dict, max_length=64)
    body: JsonValue = None
    """A string is sent as it is, anything else as JSON; null means none."""

    expected_status: Statuses = ("2xx",)
    retry_status: Statuses = (408, 409, 423, 425, 429, "5xx")
    timeout_seconds: float = Field(default=30.0, gt=0, le=3600, allow_inf_nan=False)
    """For the whole call: every redirect and the body included."""

    follow_redirects: bool = False
    max_body_bytes: int = Field(default=64 * 1024, ge=0, le=192 * 1024)
    """How much of the answer's body to keep, counted as the JSON it is stored as."""

    @field_validator("url")
    @classmethod
    def _check_url(cls, text: str) -> str:
        parse_url(text)
        return text


class HttpAnswer(BuiltInModel):
    """What came back."""

    status: int
    url: str
    """Where the answer came from, after redirects."""

    headers: dict[str, str]
    body_format: BodyFormat = "none"
    body: JsonValue = None
    truncated: bool = False
    size: int | None = None
    """Bytes of the whole body, uncompressed; null where it was cut and the length not announced."""
