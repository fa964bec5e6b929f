"""A registered handler.

The middleware around it, the policy that its options give its jobs, and the reading of payloads and
writing of results by its types.
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any, Final, TypeAlias

import orjson
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic_core import InitErrorDetails, PydanticCustomError

from asyncjob.app.context import JobContext
from asyncjob.app.errors import describe_validation_error
from asyncjob.app.inspection import (
    HandlerError,
    InspectedFunction,
    ResourceNeeds,
    inspect_signature,
)
from asyncjob.app.resources import Resources
from asyncjob.deep_json import is_deeper
from asyncjob.free_json import FreeJsonError, dump
from asyncjob.json_types import Json
from asyncjob.lifecycle.policy import PolicyLayer, read_policy_layer
from asyncjob.models.base import RetryPolicy

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


_LEASE_SECONDS = range(5, 601)
_TIMEOUT_SECONDS = range(1, 31_536_001)


def handler_policy(
    type_: str, *, timeout: int | None, retry: RetryPolicy | None, lease: int | None
) -> PolicyLayer:
    """Return the layer of a handler; raises HandlerError for what no job could have."""
    _check_seconds(type_, "timeout", timeout, _TIMEOUT_SECONDS)
    _check_seconds(type_, "lease", lease, _LEASE_SECONDS)
    source: dict[str, object] = {}
    if timeout is not None:
        source["executionTimeoutSeconds"] = timeout
    if lease is not None:
        source["leaseDurationSeconds"] = lease
    if retry is not None:
        _check_retry(type_, retry)
        source["retryPolicy"] = retry.model_dump(mode="json", by_alias=True, exclude_none=True)
    return read_policy_layer(source)  # type: ignore[arg-type]  # a pydantic dump is plain JSON


def check_concurrency(type_: str, concurrency: int | None) -> None:
    """Raise HandlerError for what would never let a job run."""
    if concurrency is not None and (type(concurrency) is not int or concurrency < 1):
        raise HandlerError(
            f"handler {type_!r}: concurrency is {concurrency!r}, not a whole number of at least 1"
        )


def _check_retry(type_: str, retry: object) -> None:
    if not isinstance(retry, RetryPolicy):
        raise HandlerError(
            f"handler {type_!r}: retry is {retry!r}, not a RetryPolicy: "
            "retry=RetryPolicy(max_retries=3)"
        )


def _check_seconds(type_: str, what: str, seconds: int | None, allowed: range) -> None:
    if seconds is not None and seconds not in allowed:
        raise HandlerError(
            f"handler {type_!r}: {what} is {seconds}, not a whole number of seconds from "
            f"{allowed[0]} to {allowed[-1]}"
        )


__all__ = [
    "Handler",
    "HandlerError",
    "HandlerFunction",
    "Isolation",
    "build_handler",
    "describe_validation_error",
]

HandlerFunction = Callable[..., Any]
"""A handler as written by its author: sync or async, any payload, any result."""

_NO_DEFAULT: Final = object()

MAX_JSON_LEVELS: Final = 200
"""Levels to which pydantic's own JSON parser goes, by which payloads are read."""


class Isolation(StrEnum):
    """Where a handler runs."""

    LOOP = "loop"
    THREAD = "thread"
    PROCESS = "process"


@dataclass(frozen=True, slots=True)
class Handler:
    """A registered handler. `default_payload` is its payload where a job has none.

    `memory_mib` limits the process of one that has its own. At most `concurrency` of its jobs are
    at work at a time in one worker process.
    """

    type: str
    function: HandlerFunction
    isolation: Isolation
    takes_payload: bool
    payload_adapter: TypeAdapter[Any]
    result_adapter: TypeAdapter[Any] | None
    policy: PolicyLayer
    default_payload: object = _NO_DEFAULT
    is_async: bool = True
    memory_mib: int | None = None
    needs: ResourceNeeds = field(default_factory=dict)
    middleware: tuple[Middleware, ...] = ()
    concurrency: int | None = None

    def inside_process(self) -> "Handler":
        """Return the handler as it runs inside its own process."""
        return replace(self, isolation=_default_isolation(is_async=self.is_async))

    def check_types(self) -> None:
        """Raise HandlerError if its payload or result needs a type that is nowhere.

        Asked once all is imported: pydantic lets a type be defined after the handler.
        """
        for what, adapter in (("payload", self.payload_adapter), ("result", self.result_adapter)):
            try:
                if adapter is not None:
                    adapter.rebuild(raise_errors=True)
            except (PydanticUserError, PydanticUndefinedAnnotation) as error:
                reason = str(error).splitlines()[0]
                raise HandlerError(
                    f"handler {self.type!r}: its {what} cannot be checked: {reason}"
                ) from error

    def read_payload(self, payload: Json) -> object:
        """Return the payload as the handler wants it; its own default where there is none.

        One for a process of its own is returned as it is, and checked in there. A handler that
        takes none is given none, whatever it is.
        Raises pydantic's ValidationError, and whatever a validator of the handler's own raises.
        """
        if not self.takes_payload:
            return None
        if self.isolation is Isolation.PROCESS:
            return payload
        if payload is None and self.default_payload is not _NO_DEFAULT:
            return self.default_payload
        try:
            # As JSON, so that strict models take dates and the like from text.
            return self.payload_adapter.validate_json(orjson.dumps(payload))
        except (orjson.JSONEncodeError, ValidationError):
            if not is_deeper(payload, MAX_JSON_LEVELS):
                raise
        return self._read_deep_payload(payload)

    def _read_deep_payload(self, payload: Json) -> object:
        """Check what the JSON parser does not read as the Python value that it is already."""
        try:
            return self.payload_adapter.validate_python(payload)
        except ValidationError as error:
            details = {"levels": MAX_JSON_LEVELS, "found": describe_validation_error(error)}
        told = PydanticCustomError(
            "nested_too_deeply",
            "nested deeper than {levels} levels, where strict types take no text; submit it "
            "flatter ({found})",
            details,
        )
        errors: list[InitErrorDetails] = [{"type": told, "input": None}]
        raise ValidationError.from_exception_data("payload", errors)

    def dump_result(self, result: object) -> object:
        """Return the result by the type that the handler declares; as it is if by none.

        One from a process of its own comes out as JSON already.
        Raises FreeJsonError for NaN and for a coroutine, and whatever a serializer of the
        handler's own raises.
        """
        _check_awaited(result)
        if self.result_adapter is None or self.isolation is Isolation.PROCESS:
            return result
        return dump(self.result_adapter, result, what="the result")


def build_handler(
    type_: str,
    function: HandlerFunction,
    policy: PolicyLayer,
    *,
    isolation: str | None = None,
    memory_mib: int | None = None,
    concurrency: int | None = None,
    context: type = JobContext,
) -> Handler:
    """Inspect a function; raises HandlerError that says what is wrong with it or its options.

    `context` is what the function has to take first.
    """
    signature = inspect_signature(type_, function, context)
    _check_isolation(type_, isolation, memory_mib)
    default = signature.default_payload
    return Handler(
        type=type_,
        function=function,
        isolation=Isolation.PROCESS
        if isolation
        else _default_isolation(is_async=signature.is_async),
        takes_payload=signature.takes_payload,
        payload_adapter=signature.payload_adapter,
        result_adapter=signature.result_adapter,
        policy=policy,
        default_payload=_NO_DEFAULT if default is inspect.Parameter.empty else default,
        is_async=signature.is_async,
        memory_mib=memory_mib,
        needs=signature.needs,
        concurrency=concurrency,
    )


def _default_isolation(*, is_async: bool) -> Isolation:
    return Isolation.LOOP if is_async else Isolation.THREAD


def _check_awaited(result: object) -> None:
    """Raise FreeJsonError for what an `async def` gives whose caller did not await it."""
    if inspect.iscoroutine(result):
        result.close()
        raise FreeJsonError(
            "the result is a coroutine that nobody has awaited, so its code did not run: a "
            "decorator or middleware that wraps an `async def` has to be one and await it"
        )


def _check_isolation(type_: str, isolation: str | None, memory_mib: int | None) -> None:
    if isolation not in (None, Isolation.PROCESS):
        raise HandlerError(
            f"handler {type_!r}: isolation={isolation!r} is unknown; give 'process', or leave it "
            f"out: async handlers run in the event loop, sync ones in a thread"
        )
    if memory_mib is None:
        return
    if isolation is None:
        raise HandlerError(f"handler {type_!r}: memory_mib needs isolation='process'")
    if type(memory_mib) is not int or memory_mib < 1:
        raise HandlerError(f"handler {type_!r}: memory_mib={memory_mib!r} is not a number of MiB")
