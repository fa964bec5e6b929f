"""Who follows a stream, and whether they still may: it can outlive their token and their role."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from asyncjob_gateway.auth.caller import Caller


@dataclass(frozen=True, slots=True)
class StreamCaller:
    """`stands` says whether the caller may still follow; asked before anything is handed over."""

    caller: Caller
    is_still_allowed: Callable[[], Awaitable[bool]]
