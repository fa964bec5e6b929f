"""Reads the signature of a handler; what does not fit is one line that names the function."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from asyncjob.app.context import JobContext
from asyncjob.app.inspection import HandlerError, Inspected, Needs

__all__ = ["HandlerError", "Signature", "read_signature"]


@dataclass(frozen=True, slots=True)
class Signature:
    """What a handler takes and returns; `default` is inspect's `empty` where there is none."""

    is_async: bool
    takes_payload: bool
    payload: TypeAdapter[Any]
    result: TypeAdapter[Any] | None
    default: object
    needs: Needs


def read_signature(type_: str, function: Callable[..., Any]) -> Signature:
    """Inspect a function; raises HandlerError that says what is wrong with it."""
    inspected = Inspected(f"handler {type_!r}", function)
    if inspected.is_generator or inspected.is_async_generator:
        inspected.refuse("it yields; a handler returns its result")
    parameters, hints = _parameters(inspected), inspected.hints
    payload = parameters[1] if len(parameters) > 1 else None
    result = hints.get("return", Any)
    hint = hints.get(payload.name, Any) if payload else Any
    return Signature(
        is_async=inspected.is_async,
        takes_payload=payload is not None,
        payload=_adapter(inspected, "payload", hint),
        result=_adapter(inspected, "result", result) if result is not Any else None,
        default=payload.default if payload else inspect.Parameter.empty,
        needs=inspected.needs,
    )


def _parameters(inspected: Inspected) -> list[inspect.Parameter]:
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


def _adapter(inspected: Inspected, what: str, hint: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(hint)
    except PydanticUserError as error:
        reason = str(error).splitlines()[0]
        inspected.refuse(f"its {what} cannot be checked: {reason}")
