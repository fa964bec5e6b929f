"""The main program of a handler process: `python -m asyncjob_worker.isolation.child`.

Only the worker starts it; its arguments are the descriptor of a socket and the worker's PID. It
imports the app, but nothing that talks to the API server. It runs one job at a time and reports how
each ended. Of the app's resources it opens only those that its handlers need, at the first job that
needs them.
"""

import asyncio
import contextvars
import faulthandler
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import ValidationError

from asyncjob.app import Handler, JobContext, Resources, WorkerApp, outcomes
from asyncjob.app.error_report import (
    ErrorReport,
    describe_error,
    to_error_report,
    to_payload_error_report,
)
from asyncjob.app.errors import HandlerExitError
from asyncjob.app.resource_lifecycle import OpenResources
from asyncjob.errors import ConfigError
from asyncjob.free_json import FreeJsonError, normalize
from asyncjob.json_types import Json, JsonObject
from asyncjob.logs import configure_logging
from asyncjob_worker.app_loader import load_app
from asyncjob_worker.clock import boottime
from asyncjob_worker.isolation import protocol
from asyncjob_worker.isolation.child_link import (
    ActiveRun,
    MessageReader,
    RemoteFiles,
    WorkerConnection,
    die_with,
    exit_group,
)
from asyncjob_worker.isolation.executor import HandlerExecutor
from asyncjob_worker.isolation.memory import allocated, memory_limit
from asyncjob_worker.isolation.protocol import MAX_BYTES, MemoryUsage, ProcessConfig
from asyncjob_worker.tracing import Tracing, job_log_context, tracing_of

CLOSE_SECONDS = 2.0
"""How long closing all resources may take: less than the worker waits for the process to end."""

_ENVELOPE_BYTES = 1024
"""Room in a message for what it has beside the result."""


def main() -> None:
    """Load the app, then run the jobs that the worker sends until it sends the end."""
    descriptor, worker_pid = map(int, sys.argv[1:])
    die_with(worker_pid)
    faulthandler.enable()
    os.set_inheritable(descriptor, False)  # noqa: FBT003  # the standard library's own form
    connection = WorkerConnection(socket.socket(fileno=descriptor))
    config = _receive_config(connection)
    configure_logging("json" if config.log_format == "json" else "text")
    sys.path[:] = config.path
    try:
        app = load_app(config.app)
    except ConfigError as error:
        connection.send(protocol.unable_message(" ".join(str(error).split())))
        sys.exit(1)
    asyncio.run(_serve(app, connection, config))


def _receive_config(connection: WorkerConnection) -> ProcessConfig:
    message = next(connection.messages(), None)
    if message is None:
        exit_group()
    return protocol.read_begin(message)


async def _serve(app: WorkerApp, connection: WorkerConnection, config: ProcessConfig) -> None:
    reader = MessageReader(connection)
    reader.start()
    tracing = tracing_of(os.environ)
    try:
        loop = HandlerLoop(app, connection, max_free_json=config.max_free_json, tracing=tracing)
        await loop.run(reader.runs)
    finally:
        tracing.close()


class HandlerLoop:
    """Runs the handlers of one handler process. `max_free_json` is in bytes."""

    def __init__(
        self,
        app: WorkerApp,
        connection: WorkerConnection,
        *,
        max_free_json: int,
        tracing: Tracing,
    ) -> None:
        self._app = app
        self._connection = connection
        self._max_free_json = max_free_json
        self._tracing = tracing
        self._executor = HandlerExecutor(threads=1)
        self._resources = ProcessResources(app)

    async def run(self, runs: asyncio.Queue[ActiveRun | None]) -> None:
        """Run the jobs until the worker sends the end (None), then close the resources."""
        self._connection.send(protocol.ready_message(self._resources.memory_usage()))
        while (active := await runs.get()) is not None:
            info = active.request.info
            with self._tracing.attach(info.traceparent), job_log_context(info):
                answer = await self._run_to_message(active)
            active.close()
            self._connection.send(answer)
        await self._resources.close()

    async def _run_to_message(self, active: ActiveRun) -> JsonObject:
        try:
            result = await self._run_job(active)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001  # a handler may raise anything
            spent = isinstance(error, MemoryError)
            report = self._error_report(error, active.request.memory_mib)
            return protocol.failed_message(report, self._resources.memory_usage(spent=spent))
        return protocol.done_message(result, self._resources.memory_usage())

    def _error_report(self, error: BaseException, memory_mib: int | None) -> ErrorReport:
        if isinstance(error, _PayloadRefusedError):
            return to_payload_error_report(error.error)
        return to_error_report(error, self._app.categories, memory_mib=memory_mib)

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
        """Open what the handler needs, without the memory limit.

        What the open resources hold still counts towards the limit while the handler runs.
        """
        opening = self._resources.start_opening(handler)
        try:
            await _wait_for_step(opening, opening.cancel, active)
        finally:
            active.interrupt = None
        if opening.cancelled():
            raise HandlerExitError("stopped before its resources were open")
        return opening.result()

    async def _call_handler(self, handler: Handler, active: ActiveRun) -> object:
        """Return the handler's result once all child jobs that it has submitted are stored.

        They are stored, too, before it raises what the job is parked for.
        """
        payload = _read_payload(handler, active.request.payload)
        context = self._build_context(active)
        started = self._executor.start(handler, context, payload)
        try:
            await _wait_for_step(started.future, started.interrupt, active)
            if started.future.cancelled():
                why = asyncio.CancelledError()
                raise HandlerExitError("the handler cancelled itself") from why
            error = started.future.exception()
            parks = error is not None and outcomes.asks_to_park(error)
            if error is None or parks:
                submissions = asyncio.ensure_future(context.wait_for_submissions(parking=parks))
                await _wait_for_step(submissions, context.stop, active)
                submissions.result()
        finally:
            active.interrupt = None
        return started.future.result()

    def _build_context(self, active: ActiveRun) -> JobContext:
        return JobContext(
            active.request.info,
            active.reports,
            remaining=lambda: active.request.ends_at - boottime(),
            stopping=active.stopping,
            max_bytes=self._max_free_json,
            children=active.children,
            steps=active,
            files=RemoteFiles(active.children),
        )


class _PayloadRefusedError(Exception):
    """The payload does not fit the handler's schema."""

    def __init__(self, error: ValidationError) -> None:
        super().__init__("payload")
        self.error = error


async def _wait_for_step(
    step: asyncio.Future[Any], interrupt: Callable[[], object], active: ActiveRun
) -> None:
    """Wait for one step of a job, which a stop interrupts."""
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
    """Return the result as JSON; raises FreeJsonError if it is not, or too large."""
    try:
        plain = handler.dump_result(result)
        return normalize(plain, what="the result", max_bytes=MAX_BYTES - _ENVELOPE_BYTES)
    except FreeJsonError:
        raise
    except Exception as error:  # the handler's own serializer may raise anything
        raise FreeJsonError(f"the result is not JSON: {describe_error(error)}") from error


class ProcessResources:
    """Opens resources and measures what memory they take, which does not count for any job."""

    def __init__(self, app: WorkerApp) -> None:
        self._open_resources = OpenResources(app)
        self._baseline = allocated()
        self._failed = False

    def memory_usage(self, *, spent: bool = False) -> MemoryUsage:
        """Return the process's memory usage; it is spent after a resource could not be opened."""
        return MemoryUsage(allocated(), self._baseline, spent or self._failed)

    def start_opening(self, handler: Handler) -> "asyncio.Task[Resources]":
        """Open the resources that a handler needs, and their dependencies; raises ResourceError."""
        # Not in the context of this job: the resources outlive it.
        opening, context = self._open(handler), contextvars.Context()
        return asyncio.get_running_loop().create_task(opening, context=context)

    async def close(self) -> None:
        """Close the resources in reverse order."""
        await self._open_resources.close(CLOSE_SECONDS)

    async def _open(self, handler: Handler) -> Resources:
        before, self._failed = allocated(), True
        types = [need.type for need in handler.needs.values()]
        resources = await self._open_resources.open(types)
        self._failed = False
        self._baseline += max(0, allocated() - before)
        return resources


def with_resources(handler: Handler, resources: Resources) -> Handler:
    """Return the handler with its resources filled in."""
    arguments = resources.arguments(handler.needs)
    return replace(handler, function=partial(handler.function, **arguments))


if __name__ == "__main__":
    main()
