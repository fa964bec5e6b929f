"""Runs orders in a child, one at a time, and tells how each ended."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from asyncjob.app import Handler, JobContext, Resources, WorkerApp
from asyncjob.app.error_report import (
    ErrorReport,
    describe_error,
    to_error_report,
    to_payload_error_report,
)
from asyncjob.errors import ConfigError
from asyncjob.free_json import FreeJsonError, normalize
from asyncjob.json_types import Json, JsonObject
from asyncjob_worker.calls import HandlerExitError
from asyncjob_worker.clock import lease_seconds
from asyncjob_worker.isolation import messages
from asyncjob_worker.isolation.frames import MAX_BYTES
from asyncjob_worker.isolation.inbox import ActiveRun
from asyncjob_worker.isolation.link import WorkerConnection
from asyncjob_worker.isolation.memory import memory_limit
from asyncjob_worker.isolation.resources import ProcessResources, with_resources
from asyncjob_worker.logged import job_log_context
from asyncjob_worker.starts import HandlerExecutor
from asyncjob_worker.tracing import NO_TRACING, Tracing

_ENVELOPE_BYTES = 1024
"""What a message needs beside the result in it."""


class _PayloadRefusedError(Exception):
    """The payload does not fit the handler's schema."""

    def __init__(self, error: ValidationError) -> None:
        super().__init__("payload")
        self.error = error


class HandlerLoop:
    """The handlers of one child process. `max_free_json` is in bytes."""

    def __init__(
        self,
        app: WorkerApp,
        connection: WorkerConnection,
        *,
        max_free_json: int,
        tracing: Tracing = NO_TRACING,
    ) -> None:
        self._app = app
        self._connection = connection
        self._max_free_json = max_free_json
        self._tracing = tracing
        self._executor = HandlerExecutor(threads=1)
        self._resources = ProcessResources(app)

    async def run(self, runs: asyncio.Queue[ActiveRun | None]) -> None:
        """Run orders until the end is ordered, then close what is open."""
        self._connection.send(messages.ready_message(self._resources.memory_usage()))
        while (order := await runs.get()) is not None:
            info = order.request.info
            with self._tracing.attach(info.traceparent), job_log_context(info):
                ending = await self._run_to_message(order)
            order.close()
            self._connection.send(ending)
        await self._resources.close()

    async def _run_to_message(self, active: ActiveRun) -> JsonObject:
        try:
            result = await self._run_job(active)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001  # a handler may raise anything
            spent = isinstance(error, MemoryError)
            report = self._error_report(error, active.request.memory_mib)
            return messages.failed_message(report, self._resources.memory_usage(spent=spent))
        return messages.done_message(result, self._resources.memory_usage())

    def _error_report(self, error: BaseException, memory_mib: int | None) -> ErrorReport:
        if isinstance(error, _PayloadRefusedError):
            return to_payload_error_report(error.error)
        report = to_error_report(error, self._app.categories)
        if isinstance(error, MemoryError) and memory_mib is not None and not error.args:
            return replace(report, message=f"out of memory: memory_mib={memory_mib}")
        return report

    async def _run_job(self, active: ActiveRun) -> Json:
        handler = self._handler(active.request.info.type)
        if handler.needs:
            handler = with_resources(handler, await self._open_resources(handler, active))
        with memory_limit(active.request.memory_mib):
            result = await self._call_handler(handler, active)
        return _plain_result(handler, result)

    def _handler(self, type_: str) -> Handler:
        if type_ not in self._app.handlers:
            raise ConfigError(f"the app has no handler for {type_!r} where its process imports it")
        return self._app.handlers[type_].inside_process()

    async def _open_resources(self, handler: Handler, active: ActiveRun) -> Resources:
        """Open what the handler needs. Not limited: what is open counts, its opening does not."""
        opening = self._resources.start_opening(handler)
        try:
            await _wait_for_step(opening, opening.cancel, active)
        finally:
            active.interrupt = None
        if opening.cancelled():
            raise HandlerExitError("told to stop before its resources were open")
        return opening.result()

    async def _call_handler(self, handler: Handler, active: ActiveRun) -> object:
        """Return the handler's result once all that it has submitted is stored."""
        payload, context = (
            _read_payload(handler, active.request.payload),
            self._build_context(active),
        )
        started = self._executor.start(handler, context, payload)
        try:
            await _wait_for_step(started.future, started.interrupt, active)
            if started.future.cancelled():
                raise HandlerExitError("the handler cancelled itself")
            result = started.future.result()
            settling = asyncio.ensure_future(context.wait_for_submissions())
            await _wait_for_step(settling, context.stop, active)
            settling.result()
        finally:
            active.interrupt = None
        return result

    def _build_context(self, active: ActiveRun) -> JobContext:
        return JobContext(
            active.request.info,
            active.reports,
            remaining=lambda: active.request.ends_at - lease_seconds(),
            stopping=active.stopping,
            max_bytes=self._max_free_json,
            children=active.children,
        )


async def _wait_for_step(
    step: asyncio.Future[Any], interrupt: Callable[[], object], active: ActiveRun
) -> None:
    """Wait for one step of an order, which a stop interrupts."""
    active.interrupt = interrupt
    if active.stopping.is_set():
        interrupt()
    await asyncio.wait({step})


def _read_payload(handler: Handler, payload: Json) -> object:
    try:
        return handler.read_payload(payload)
    except ValidationError as error:
        raise _PayloadRefusedError(error) from error


def _plain_result(handler: Handler, result: object) -> Json:
    """Return the result as JSON; raises FreeJsonError."""
    try:
        plain = handler.dump_result(result)
        return normalize(plain, what="the result", max_bytes=MAX_BYTES - _ENVELOPE_BYTES)
    except FreeJsonError:
        raise
    except Exception as error:  # a serializer of the handler's own may raise anything
        raise FreeJsonError(f"the result is not JSON: {describe_error(error)}") from error
