"""What is wrong with a field, in words that say what it may be."""

from collections.abc import Mapping
from typing import Final

from pydantic_core import ErrorDetails

from asyncjob.models.base import QUEUE_PATTERN, TIMESTAMP_PATTERN, TYPE_PATTERN
from asyncjob.names import NAME_PATTERN

_ALNUM_ENDS: Final = "first and last a letter or digit"

PATTERN_DETAILS: Final[Mapping[str, str]] = {
    TIMESTAMP_PATTERN: "It should be a time of the years 1000 to 9999, as 2030-01-31T08:00:00Z",
    NAME_PATTERN: f"It should have lower-case letters, digits, - and . alone, {_ALNUM_ENDS}",
    QUEUE_PATTERN: f"It should have lower-case letters, digits and - alone, {_ALNUM_ENDS}",
    TYPE_PATTERN: f"It should have letters, digits and . _ / - alone, {_ALNUM_ENDS}",
}
"""By the pattern that a text does not match; few people read patterns."""

_TYPE_DETAILS: Final[Mapping[str, str]] = {
    "extra_forbidden": "Unknown field",
    "missing": "It is required",
    "model_type": "It should be an object",
    "model_attributes_type": "It should be an object",
    "dict_type": "It should be an object",
    "list_type": "It should be a list",
    "string_type": "It should be text",
}
"""By pydantic's name of the error, where its own words speak of Python."""


def field_detail(error: ErrorDetails) -> str:
    """Return what people are told of one error of a model; what was sent is never repeated."""
    if error["type"] == "string_pattern_mismatch":
        pattern = error.get("ctx", {}).get("pattern", "")
        return PATTERN_DETAILS.get(pattern, error["msg"])
    return _TYPE_DETAILS.get(error["type"], error["msg"])
