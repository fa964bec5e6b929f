"""What an app wraps around its handlers, in the worker's event loop."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from asyncjob.app.context import JobContext
from asyncjob.app.inspection import InspectedFunction, ResourceNeeds
from asyncjob.app.resources import Resources

CallNext: TypeAlias = Callable[[], Awaitable[Any]]
"""Runs what a middleware wraps; gives what the handler returns, and raises what it raises."""


@dataclass(frozen=True, slots=True)
class Middleware:
    """A registered middleware: `async def timing(job, call_next) -> Any`, resources by keyword."""

    function: Callable[..., Awaitable[Any]]
    needs: ResourceNeeds


def inspect_middleware(function: Callable[..., Any]) -> Middleware:
    """Inspect a function; raises HandlerError that says what is wrong with it."""
    inspected = InspectedFunction("middleware", function)
    if not inspected.is_async:
        inspected.refuse("it has to be `async def`; it wraps sync handlers, too")
    if len(inspected.positional) != 2:  # noqa: PLR2004  # (job, call_next)
        inspected.refuse(f"it takes {len(inspected.positional)} parameters, not (job, call_next)")
    return Middleware(function, inspected.needs)


def wrap_in_middleware(
    layers: Sequence[Middleware], job: JobContext, resources: Resources, core: CallNext
) -> CallNext:
    """Return the call of all layers, the first of them outermost, around the core."""
    call = core
    for layer in reversed(layers):
        call = partial(layer.function, job, call, **resources.arguments(layer.needs))
    return call
