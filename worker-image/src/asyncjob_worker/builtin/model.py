"""What payloads and results of the built-in handlers share.

That is the base model, and buffers that keep the beginning or the end of long output, so that a
result fits into a job's status.
"""

import orjson
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class BuiltInModel(BaseModel):
    """camelCase on the wire; unknown fields are errors, so that a misspelt one is noticed."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
        frozen=True,
        extra="forbid",
    )


class Head:
    """Keeps the first `limit` bytes of a stream, and counts all of them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self.size = 0

    @property
    def data(self) -> bytes:
        """The bytes that are kept."""
        return bytes(self._kept)

    @property
    def is_truncated(self) -> bool:
        """Whether there were more bytes than are kept."""
        return self.size > self._limit

    def add(self, data: bytes) -> None:
        """Add the next bytes; keep those that fit."""
        self.size += len(data)
        self._kept += data[: max(0, self._limit - len(self._kept))]


class Tail:
    """Keeps the last `limit` bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        """Add the next bytes; drop the oldest."""
        self._kept += data
        del self._kept[: -self._limit]

    @property
    def text(self) -> str:
        """The bytes as text; those that are not UTF-8 are replaced."""
        return bytes(self._kept).decode("utf-8", "replace").strip()


def fit_json(text: str, limit: int) -> str:
    """Return the beginning of the text that takes at most `limit` bytes as JSON.

    A control character takes up to six bytes there, so that the length of a text says little.
    """
    while (size := len(orjson.dumps(text))) > limit:
        text = text[: min(len(text) - 1, len(text) * limit // size)]
    return text
