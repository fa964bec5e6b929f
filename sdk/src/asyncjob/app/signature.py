"""Reads the signature of a handler; what does not fit is one line that names the function."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, get_type_hints

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from asyncjob.app.context import JobContext
from asyncjob.errors import ConfigError

_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class HandlerError(ConfigError):
    """A handler is not what a handler has to be."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a handler takes and returns; `default` is inspect's `empty` where there is none."""

    is_async: bool
    takes_payload: bool
    payload: TypeAdapter[Any]
    result: TypeAdapter[Any] | None
    default: object


def read_signature(type_: str, function: Callable[..., Any]) -> Signature:
    """Inspect a function; raises HandlerError that says what is wrong with it."""
    return _Reader(type_, function).read()


class _Reader:
    def __init__(self, type_: str, function: Callable[..., Any]) -> None:
        self._who = f"handler {type_!r} ({_where(function)})"
        # An object with an async `__call__` is no coroutine function itself.
        self._code = function if inspect.isroutine(function) else _call_of(function)
        self._function = function

    def read(self) -> Signature:
        self._check_kind()
        parameters = self._parameters()
        hints = self._hints()
        first = hints.get(parameters[0].name, JobContext)
        if first is not JobContext and first is not Any:
            self._refuse(f"the first parameter is the JobContext, not {first!r}")
        payload = parameters[1] if len(parameters) > 1 else None
        result = hints.get("return", Any)
        return Signature(
            is_async=inspect.iscoroutinefunction(self._code),
            takes_payload=payload is not None,
            payload=self._adapter("payload", hints.get(payload.name, Any) if payload else Any),
            result=self._adapter("result", result) if result is not Any else None,
            default=payload.default if payload else inspect.Parameter.empty,
        )

    def _check_kind(self) -> None:
        if inspect.isgeneratorfunction(self._code) or inspect.isasyncgenfunction(self._code):
            self._refuse("it yields; a handler returns its result")

    def _parameters(self) -> list[inspect.Parameter]:
        parameters = list(inspect.signature(self._function).parameters.values())
        if not 1 <= len(parameters) <= 2:  # noqa: PLR2004  # (job) or (job, payload)
            self._refuse(f"it takes {len(parameters)} parameters, not (job) or (job, payload)")
        for parameter in parameters:
            if parameter.kind not in _BY_POSITION:
                self._refuse(f"parameter {str(parameter)!r} cannot be given by position")
        return parameters

    def _hints(self) -> dict[str, Any]:
        try:
            return get_type_hints(self._code, include_extras=True)
        except (NameError, AttributeError, TypeError) as error:
            self._refuse(f"unknown type in its signature: {error}")

    def _adapter(self, what: str, hint: Any) -> TypeAdapter[Any]:
        try:
            return TypeAdapter(hint)
        except PydanticUserError as error:
            reason = str(error).splitlines()[0]
            self._refuse(f"its {what} cannot be checked: {reason}")

    def _refuse(self, why: str) -> NoReturn:
        raise HandlerError(f"{self._who}: {why}")


def _call_of(function: Callable[..., Any]) -> Callable[..., Any]:
    inner = getattr(function, "func", None)  # functools.partial
    return inner if callable(inner) else type(function).__call__


def _where(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{function.__module__}.{name}"
