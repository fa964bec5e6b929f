"""One handler: the function, what it takes and returns, and its policy defaults."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import orjson
from pydantic import TypeAdapter

from asyncjob.app.explain import explain
from asyncjob.app.inspection import HandlerError, Needs
from asyncjob.app.middleware import Middleware
from asyncjob.app.signature import read_signature
from asyncjob.free_json import dump
from asyncjob.json_types import Json
from asyncjob.lifecycle.policy import PolicyLayer

__all__ = ["Function", "Handler", "HandlerError", "Isolation", "build", "explain"]

Function = Callable[..., Any]
"""A handler as written by its author: sync or async, any payload, any result."""

_ABSENT: Final = object()


class Isolation(StrEnum):
    """Where a handler runs."""

    LOOP = "loop"
    THREAD = "thread"


@dataclass(frozen=True, slots=True)
class Handler:
    """A registered handler. `default` is its payload where a job has none.

    At most `concurrency` of its jobs are at work at a time in one worker process.
    """

    type: str
    function: Function
    isolation: Isolation
    takes_payload: bool
    payload: TypeAdapter[Any]
    result: TypeAdapter[Any] | None
    policy: PolicyLayer
    default: object = _ABSENT
    needs: Needs = field(default_factory=dict)
    middleware: tuple[Middleware, ...] = ()
    concurrency: int | None = None

    def read_payload(self, payload: Json) -> object:
        """Return the payload as the handler wants it; its own default where there is none.

        Raises pydantic's ValidationError, and whatever a validator of the handler's own raises.
        """
        if payload is None and self.default is not _ABSENT:
            return self.default
        # As JSON, so that strict models take dates and the like from text.
        return self.payload.validate_json(orjson.dumps(payload))

    def dump_result(self, result: object) -> object:
        """Return the result by the type that the handler declares; as it is if by none.

        Raises FreeJsonError for NaN, and whatever a serializer of the handler's own raises.
        """
        if self.result is None:
            return result
        return dump(self.result, result, what="the result")


def build(
    type_: str, function: Function, policy: PolicyLayer, *, concurrency: int | None = None
) -> Handler:
    """Inspect a function; raises HandlerError that says what is wrong with its signature."""
    signature = read_signature(type_, function)
    default = signature.default
    return Handler(
        type=type_,
        function=function,
        isolation=Isolation.LOOP if signature.is_async else Isolation.THREAD,
        takes_payload=signature.takes_payload,
        payload=signature.payload,
        result=signature.result,
        policy=policy,
        default=_ABSENT if default is inspect.Parameter.empty else default,
        needs=signature.needs,
        concurrency=concurrency,
    )
