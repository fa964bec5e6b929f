"""The seam to whoever takes what a handler reports."""

from collections.abc import Generator
from typing import Protocol

from asyncjob.json_types import Json


class ReportSink(Protocol):
    """Takes what a handler reports; called from the handler's thread."""

    def progress(self, percent: int, message: str | None) -> None:
        """Note how far the handler is; stored soon, the newest wins."""

    def checkpoint(self, value: Json) -> None:
        """Note where to resume; stored soon, the newest wins."""


class ReportAck:
    """What reporting returns: nothing to wait for, but `await` is allowed."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        """Return at once."""
        yield from ()


REPORT_ACK = ReportAck()
