"""Inspects the functions that an app registers, and the signature of a handler.

What does not fit is a `HandlerError`, one line that names the function.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn, get_type_hints

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from asyncjob.app.context import JobContext
from asyncjob.errors import ConfigError

_POSITIONAL_KINDS = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class HandlerError(ConfigError):
    """A handler, or what belongs to it, is not what it has to be."""

    code = "app-mistake"


@dataclass(frozen=True, slots=True)
class ResourceNeed:
    """A resource that a function takes by keyword, found by `type`; an optional one has a default.

    `label` names the function.
    """

    type: Any
    optional: bool
    label: str


ResourceNeeds = Mapping[str, ResourceNeed]
"""The resources that a function takes, by parameter."""


class InspectedFunction:
    """A function and what it takes; `role` says what it is to be, for the messages."""

    def __init__(self, role: str, function: Callable[..., Any]) -> None:
        self.label = f"{role} ({_qualified_name(function)})"
        # An object with an async `__call__` is no coroutine function itself.
        self._inspectable = (
            function if inspect.isroutine(function) else _underlying_callable(function)
        )
        self._function = function

    @property
    def is_async(self) -> bool:
        """Whether calling it gives something to await."""
        return inspect.iscoroutinefunction(self._inspectable)

    @property
    def is_generator(self) -> bool:
        """Whether it yields, plainly."""
        return inspect.isgeneratorfunction(self._inspectable)

    @property
    def is_async_generator(self) -> bool:
        """Whether it yields, and is async."""
        return inspect.isasyncgenfunction(self._inspectable)

    @cached_property
    def positional(self) -> list[inspect.Parameter]:
        """The parameters that are given by position."""
        given = [one for one in self._parameters if one.kind is not inspect.Parameter.KEYWORD_ONLY]
        for parameter in given:
            if parameter.kind not in _POSITIONAL_KINDS:
                self.refuse(f"parameter {str(parameter)!r} cannot be given by position")
        return given

    @cached_property
    def needs(self) -> ResourceNeeds:
        """The resources that it takes: its keyword-only parameters."""
        keywords = inspect.Parameter.KEYWORD_ONLY
        return {
            one.name: self._resource_need(one) for one in self._parameters if one.kind is keywords
        }

    @cached_property
    def hints(self) -> Mapping[str, Any]:
        """The types of its parameters, and of what it returns."""
        try:
            return get_type_hints(self._inspectable, include_extras=True)
        except (NameError, AttributeError, TypeError) as error:
            self.refuse(f"unknown type in its signature: {error}")

    def refuse(self, why: str) -> NoReturn:
        """Raise HandlerError."""
        raise HandlerError(f"{self.label}: {why}")

    @cached_property
    def _parameters(self) -> list[inspect.Parameter]:
        return list(inspect.signature(self._function).parameters.values())

    def _resource_need(self, parameter: inspect.Parameter) -> ResourceNeed:
        if parameter.name not in self.hints:
            self.refuse(
                f"keyword-only parameter {parameter.name!r} has no type: what follows `*` are "
                "resources, found by their type"
            )
        wanted = self.hints[parameter.name]
        try:
            hash(wanted)
        except TypeError:
            self.refuse(f"the type of {parameter.name!r} cannot be looked up: {wanted!r}")
        return ResourceNeed(wanted, parameter.default is not inspect.Parameter.empty, self.label)


def type_name(kind: object) -> str:
    """Return what people call a type."""
    return kind.__qualname__ if isinstance(kind, type) else str(kind)


def _underlying_callable(function: Callable[..., Any]) -> Callable[..., Any]:
    inner = getattr(function, "func", None)  # functools.partial
    return inner if callable(inner) else type(function).__call__


def _qualified_name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{function.__module__}.{name}"


__all__ = ["HandlerError", "HandlerSignature", "inspect_signature"]


@dataclass(frozen=True, slots=True)
class HandlerSignature:
    """What a handler takes and returns.

    `default_payload` is inspect's `empty` where there is none.
    """

    is_async: bool
    takes_payload: bool
    payload_adapter: TypeAdapter[Any]
    result_adapter: TypeAdapter[Any] | None
    default_payload: object
    needs: ResourceNeeds


def inspect_signature(
    type_: str, function: Callable[..., Any], context: type = JobContext
) -> HandlerSignature:
    """Inspect a function; raises HandlerError that says what is wrong with it.

    `context` is what it has to take first.
    """
    inspected = InspectedFunction(f"handler {type_!r}", function)
    if inspected.is_generator or inspected.is_async_generator:
        inspected.refuse("it yields; a handler returns its result")
    parameters, hints = _parameters(inspected, context), inspected.hints
    payload = parameters[1] if len(parameters) > 1 else None
    result = hints.get("return", Any)
    hint = hints.get(payload.name, Any) if payload else Any
    return HandlerSignature(
        is_async=inspected.is_async,
        takes_payload=payload is not None,
        payload_adapter=_type_adapter(inspected, "payload", hint),
        result_adapter=_type_adapter(inspected, "result", result) if result is not Any else None,
        default_payload=payload.default if payload else inspect.Parameter.empty,
        needs=inspected.needs,
    )


def _parameters(inspected: InspectedFunction, context: type) -> list[inspect.Parameter]:
    parameters = inspected.positional
    if not 1 <= len(parameters) <= 2:  # noqa: PLR2004  # (job) or (job, payload)
        inspected.refuse(
            f"it takes {len(parameters)} parameters, not (job) or (job, payload), and resources "
            "by keyword only: (job, payload, *, db: Database)"
        )
    first = inspected.hints.get(parameters[0].name, context)
    if first is not context and first is not Any:
        inspected.refuse(f"the first parameter is the {context.__name__}, not {first!r}")
    return parameters


def _type_adapter(inspected: InspectedFunction, what: str, hint: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(hint)
    except PydanticUserError as error:
        reason = str(error).splitlines()[0]
        inspected.refuse(f"its {what} cannot be checked: {reason}")
