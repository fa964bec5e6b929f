"""One handler: the function, what it takes and returns, and its policy defaults."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, get_type_hints

from pydantic import TypeAdapter, ValidationError

from asyncjob.app.context import JobContext
from asyncjob.errors import ConfigError
from asyncjob.json_types import Json
from asyncjob.lifecycle.policy import PolicyLayer

Function = Callable[..., Any]
"""A handler as written by its author: sync or async, any payload, any result."""

_NOTHING: Final = inspect.Parameter.empty


class HandlerError(ConfigError):
    """A handler is not what a handler has to be."""


class Isolation(StrEnum):
    """Where a handler runs."""

    LOOP = "loop"
    THREAD = "thread"


@dataclass(frozen=True, slots=True)
class Handler:
    """A registered handler."""

    type: str
    function: Function
    isolation: Isolation
    takes_payload: bool
    payload: TypeAdapter[Any]
    result: TypeAdapter[Any]
    policy: PolicyLayer

    def read_payload(self, payload: Json) -> object:
        """Return the payload as the handler wants it; raises pydantic's ValidationError."""
        return self.payload.validate_python(payload)

    def dump_result(self, result: object) -> object:
        """Return the result as plain JSON, by the type the handler declares."""
        return self.result.dump_python(result, mode="json")


def build(type_: str, function: Function, policy: PolicyLayer) -> Handler:
    """Inspect a function; raises HandlerError that says what is wrong with its signature."""
    parameters = list(inspect.signature(function).parameters.values())
    if not 1 <= len(parameters) <= 2:  # noqa: PLR2004  # (job) or (job, payload)
        raise HandlerError(
            f"handler {type_!r} ({_where(function)}) takes {len(parameters)} parameters; "
            "it has to take (job) or (job, payload)"
        )
    hints = _hints(type_, function)
    first = hints.get(parameters[0].name, JobContext)
    if first is not JobContext:
        raise HandlerError(
            f"handler {type_!r} ({_where(function)}): the first parameter is the JobContext, "
            f"not {first!r}"
        )
    takes_payload = len(parameters) > 1
    return Handler(
        type=type_,
        function=function,
        isolation=Isolation.LOOP if inspect.iscoroutinefunction(function) else Isolation.THREAD,
        takes_payload=takes_payload,
        payload=TypeAdapter(hints.get(parameters[1].name, Any) if takes_payload else Any),
        result=TypeAdapter(hints.get("return", Any)),
        policy=policy,
    )


def explain(error: ValidationError) -> str:
    """Return a schema error by field, on one line."""
    parts = (
        f"{'.'.join(str(step) for step in item['loc']) or 'payload'}: {item['msg']}"
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    )
    return "; ".join(parts)


def _hints(type_: str, function: Function) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise HandlerError(
            f"handler {type_!r} ({_where(function)}): unknown type in its signature: {error}"
        ) from error


def _where(function: Function) -> str:
    return f"{function.__module__}.{function.__qualname__}"
