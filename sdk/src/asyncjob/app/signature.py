"""Reads the signature of a handler; what does not fit is one line that names the function."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from asyncjob.app.context import JobContext
from asyncjob.app.inspection import HandlerError, InspectedFunction, ResourceNeeds

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


def inspect_signature(type_: str, function: Callable[..., Any]) -> HandlerSignature:
    """Inspect a function; raises HandlerError that says what is wrong with it."""
    inspected = InspectedFunction(f"handler {type_!r}", function)
    if inspected.is_generator or inspected.is_async_generator:
        inspected.refuse("it yields; a handler returns its result")
    parameters, hints = _parameters(inspected), inspected.hints
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


def _parameters(inspected: InspectedFunction) -> list[inspect.Parameter]:
    parameters = inspected.positional
    if not 1 <= len(parameters) <= 2:  # noqa: PLR2004  # (job) or (job, payload)
        inspected.refuse(
            f"it takes {len(parameters)} parameters, not (job) or (job, payload), and resources "
            "by keyword only: (job, payload, *, db: Database)"
        )
    first = inspected.hints.get(parameters[0].name, JobContext)
    if first is not JobContext and first is not Any:
        inspected.refuse(f"the first parameter is the JobContext, not {first!r}")
    return parameters


def _type_adapter(inspected: InspectedFunction, what: str, hint: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(hint)
    except PydanticUserError as error:
        reason = str(error).splitlines()[0]
        inspected.refuse(f"its {what} cannot be checked: {reason}")
