"""Runs orders in a child, one at a time, and tells how each ended."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from asyncjob.app import Handler, JobContext, Resources, WorkerApp
from asyncjob.app.error_report import ErrorReport, describe, report_of, report_of_payload
from asyncjob.errors import ConfigError
from asyncjob.free_json import FreeJsonError, normalize
from asyncjob.json_types import Json, JsonObject
from asyncjob_worker.calls import HandlerExitError
from asyncjob_worker.clock import lease_seconds
from asyncjob_worker.isolation import messages
from asyncjob_worker.isolation.frames import MAX_BYTES
from asyncjob_worker.isolation.inbox import Order
from asyncjob_worker.isolation.link import Link
from asyncjob_worker.isolation.memory import limited
from asyncjob_worker.isolation.resources import ChildResources, given
from asyncjob_worker.logged import logged
from asyncjob_worker.starts import Starts
from asyncjob_worker.tracing import NO_TRACING, Tracing

_ENVELOPE = 1024
"""What a message needs beside the result in it."""


class _PayloadRefusedError(Exception):
    """The payload does not fit the handler's schema."""

    def __init__(self, error: ValidationError) -> None:
        super().__init__("payload")
        self.error = error


class Service:
    """The handlers of one child process. `max_free_json` is in bytes."""

    def __init__(
        self,
        app: WorkerApp,
        link: Link,
        *,
        max_free_json: int,
        tracing: Tracing = NO_TRACING,
    ) -> None:
        self._app = app
        self._link = link
        self._max_free_json = max_free_json
        self._tracing = tracing
        self._starts = Starts(threads=1)
        self._resources = ChildResources(app)

    async def run(self, orders: asyncio.Queue[Order | None]) -> None:
        """Run orders until the end is ordered, then close what is open."""
        self._link.send(messages.ready(self._resources.footprint()))
        while (order := await orders.get()) is not None:
            info = order.run.info
            with self._tracing.inside(info.traceparent), logged(info):
                ending = await self._ending(order)
            order.close()
            self._link.send(ending)
        await self._resources.close()

    async def _ending(self, order: Order) -> JsonObject:
        try:
            result = await self._result(order)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001  # a handler may raise anything
            spent = isinstance(error, MemoryError)
            report = self._report(error, order.run.memory_mib)
            return messages.failed(report, self._resources.footprint(spent=spent))
        return messages.done(result, self._resources.footprint())

    def _report(self, error: BaseException, memory_mib: int | None) -> ErrorReport:
        if isinstance(error, _PayloadRefusedError):
            return report_of_payload(error.error)
        report = report_of(error, self._app.categories)
        if isinstance(error, MemoryError) and memory_mib is not None and not error.args:
            return replace(report, message=f"out of memory: memory_mib={memory_mib}")
        return report

    async def _result(self, order: Order) -> Json:
        handler = self._handler(order.run.info.type)
        if handler.needs:
            handler = given(handler, await self._open(handler, order))
        with limited(order.run.memory_mib):
            result = await self._work(handler, order)
        return _plain(handler, result)

    def _handler(self, type_: str) -> Handler:
        if type_ not in self._app.handlers:
            raise ConfigError(f"the app has no handler for {type_!r} where its process imports it")
        return self._app.handlers[type_].inside()

    async def _open(self, handler: Handler, order: Order) -> Resources:
        """Open what the handler needs. Not limited: what is open counts, its opening does not."""
        opening = self._resources.begin(handler)
        try:
            await _until_over(opening, opening.cancel, order)
        finally:
            order.interrupt = None
        if opening.cancelled():
            raise HandlerExitError("told to stop before its resources were open")
        return opening.result()

    async def _work(self, handler: Handler, order: Order) -> object:
        """Return the handler's result once all that it has submitted is stored."""
        payload, context = _read(handler, order.run.payload), self._context(order)
        started = self._starts.start(handler, context, payload)
        try:
            await _until_over(started.work, started.interrupt, order)
            if started.work.cancelled():
                raise HandlerExitError("the handler cancelled itself")
            result = started.work.result()
            settling = asyncio.ensure_future(context.settle())
            await _until_over(settling, context.stop, order)
            settling.result()
        finally:
            order.interrupt = None
        return result

    def _context(self, order: Order) -> JobContext:
        return JobContext(
            order.run.info,
            order.reports,
            remaining=lambda: order.run.ends_at - lease_seconds(),
            stopping=order.stopping,
            max_bytes=self._max_free_json,
            children=order.children,
        )


async def _until_over(
    work: asyncio.Future[Any], interrupt: Callable[[], object], order: Order
) -> None:
    """Wait for one step of an order, which a stop interrupts."""
    order.interrupt = interrupt
    if order.stopping.is_set():
        interrupt()
    await asyncio.wait({work})


def _read(handler: Handler, payload: Json) -> object:
    try:
        return handler.read_payload(payload)
    except ValidationError as error:
        raise _PayloadRefusedError(error) from error


def _plain(handler: Handler, result: object) -> Json:
    """Return the result as JSON; raises FreeJsonError."""
    try:
        plain = handler.dump_result(result)
        return normalize(plain, what="the result", max_bytes=MAX_BYTES - _ENVELOPE)
    except FreeJsonError:
        raise
    except Exception as error:  # a serializer of the handler's own may raise anything
        raise FreeJsonError(f"the result is not JSON: {describe(error)}") from error
