"""Runs one job in a handler process, from the worker's side.

It sends the job, records what the handler reports, and serves its requests about child jobs, steps
and files of items.
"""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast

import structlog

from asyncjob.app import Category, Handler, JobContext
from asyncjob.app.error_report import (
    ErrorKind,
    ErrorReport,
    HandlerCrashedError,
    ReportedError,
    reported,
)
from asyncjob.app.errors import SubmitError
from asyncjob.errors import AsyncJobError
from asyncjob.json_types import Json, JsonObject
from asyncjob.offload.errors import StoreRefusedError
from asyncjob.offload.store import ObjectStat
from asyncjob_worker.clock import boottime
from asyncjob_worker.isolation import protocol
from asyncjob_worker.isolation.pool import HandlerProcess, ProcessPool
from asyncjob_worker.isolation.protocol import (
    STOP_MESSAGE,
    TAKEN_MESSAGE,
    FileRequest,
    FrameError,
    FrameTooLargeError,
    ListRequest,
    MessageType,
    ResultRequest,
    RunRequest,
    StepRequest,
    StepVerb,
    SubmitRequest,
    WaitRequest,
    WorkerRequest,
    encode,
    message_type,
)

log = structlog.get_logger()

MIN_REPORT_INTERVAL = 0.05
"""Shortest time between two reports of one process, by when the first is acknowledged."""

_FINAL_TYPES = (MessageType.DONE, MessageType.FAILED)

_Future = concurrent.futures.Future[Any]


class ProcessExecution:
    """One job in a process of the pool."""

    def __init__(
        self, pool: ProcessPool, handler: Handler, context: JobContext, payload: object
    ) -> None:
        self._pool = pool
        self._handler = handler
        self._context = context
        self._payload = payload
        self._loop = asyncio.get_running_loop()
        self._process: HandlerProcess | None = None
        self._process_lock = threading.Lock()
        self._next_ack_at = 0.0

    async def run(self) -> object:
        """Return the handler's result as JSON.

        Raises Parked if that parks the job, HandlerExitError if the handler was cancelled,
        ReportedError for what else it raises, HandlerCrashedError if its process dies,
        ProcessStartError if no process can be started.
        """
        frame = self._encode_request()
        process = await self._pool.acquire(self._handler.memory_mib)
        usable = False
        try:
            final = await self._exchange(process, frame)
            result = _read_final(final)
            process.memory_usage = protocol.read_memory_usage(final)
            usable = True
        except HandlerCrashedError as error:
            self._log_death(process, error)
            raise
        except FrameError as error:
            raise HandlerCrashedError(
                f"the handler's process sent no valid message: {error}"
            ) from error
        finally:
            with self._process_lock:
                self._process = None
            self._pool.release(process, usable=usable)
        if isinstance(result, ErrorReport):
            raise reported(result)
        return result

    def stop(self) -> bool:
        """Ask the handler to stop; return False if it has not started."""
        if self._process is not None:
            self._process.send(STOP_MESSAGE)
        return self._process is not None

    def kill(self) -> bool:
        """Kill the handler's process and what it has started; return False if there is none yet."""
        if self._process is not None:
            self._process.kill()
        return self._process is not None

    def kill_process(self) -> None:
        """Kill the handler's process from any thread, but never once it may run the next job."""
        with self._process_lock:
            if self._process is not None:
                self._process.kill_process()

    async def _exchange(self, process: HandlerProcess, job: bytes) -> JsonObject:
        """Send the job, handle the messages of the process, and return the final one."""
        process.write(job)
        self._process = process
        requests = RequestServer(self._context, process.write)
        try:
            while (
                type_ := protocol.message_type(message := await process.receive())
            ) not in _FINAL_TYPES:
                if type_ == MessageType.REPORT:
                    self._apply_report(message)
                    self._acknowledge(process)
                else:
                    requests.handle(message)
        finally:
            requests.close()
        return message

    def _log_death(self, process: HandlerProcess, error: HandlerCrashedError) -> None:
        if not self._context.cancelled:
            how, job = str(error), self._context.name
            log.error("handler's process died", job=job, pid=process.pid, how=how)

    def _encode_request(self) -> bytes:
        ends_at = boottime() + self._context.seconds_left
        limit = self._handler.memory_mib
        request = RunRequest(self._context.info, cast("Json", self._payload), ends_at, limit)
        try:
            return encode(protocol.run_message(request))
        except FrameError as error:
            raise ReportedError(_unsendable_payload(error)) from error

    def _apply_report(self, message: JsonObject) -> None:
        if "checkpoint" in message:
            self._context.checkpoint(message["checkpoint"])
        progress = protocol.read_progress(message)
        if progress is not None:
            self._context.progress(*progress)

    def _acknowledge(self, process: HandlerProcess) -> None:
        """Acknowledge a report, which asks for the next: at once, unless the last was recent."""
        now = self._loop.time()
        send_at = max(now, self._next_ack_at)
        self._next_ack_at = send_at + MIN_REPORT_INTERVAL
        if send_at == now:
            process.send(TAKEN_MESSAGE)
        else:
            self._loop.call_at(send_at, process.send, TAKEN_MESSAGE)


def _read_final(message: JsonObject) -> object:
    """Return what the handler has raised or returned; raises FrameError."""
    if message_type(message) == MessageType.FAILED:
        return protocol.read_error(message)
    return protocol.read_result(message)


def _unsendable_payload(error: FrameError) -> ErrorReport:
    what = "the payload" if isinstance(error, FrameTooLargeError) else "the payload or checkpoint"
    return ErrorReport(
        ErrorKind.PAYLOAD, type(error).__name__, Category.VALIDATION, f"{what}: {error}"
    )


_WAITS: Final = frozenset({StepVerb.SLEEP, StepVerb.SIGNAL, StepVerb.CHILDREN})


class RequestServer:
    """Serves one job's requests; `write` sends frames to the process."""

    def __init__(self, context: JobContext, write: Callable[[bytes], None]) -> None:
        self._context = context
        self._jobs = context.child_jobs
        self._write = write
        self._loop = asyncio.get_running_loop()
        self._pending: dict[int, tuple[WorkerRequest, _Future]] = {}

    def handle(self, message: JsonObject) -> None:
        """Start a request, or cancel one that is to be forgotten."""
        number = protocol.read_number(message)
        if message_type(message) == MessageType.FORGET:
            self._cancel(number)
        else:
            self._start(number, protocol.read_request(message))

    def close(self) -> None:
        """Send no more answers: the process may run another job.

        Submissions and steps under way go on, as they do for a handler in the worker's own process.
        """
        for number, (request, future) in list(self._pending.items()):
            if isinstance(request, SubmitRequest):
                self._context.track_submission(request.manifest.name, future)
            else:
                self._cancel(number)
        self._pending.clear()

    def _start(self, number: int, request: WorkerRequest) -> None:
        try:
            future = self._call(request)
        except AsyncJobError as error:
            self._write(encode(protocol.error_message(number, error)))
            return
        self._pending[number] = request, future
        future.add_done_callback(partial(self._on_done, number))

    def _call(self, request: WorkerRequest) -> _Future:
        match request:
            case SubmitRequest(manifest):
                return self._jobs.submit(manifest)
            case WaitRequest(child, timeout):
                return self._jobs.wait(child, timeout)
            case ListRequest():
                return self._jobs.list()
            case StepRequest(verb, key, value):
                return self._call_step(verb, key, value)
            case FileRequest():
                return asyncio.run_coroutine_threadsafe(self._read_file(request), self._loop)

            case ResultRequest():
                return asyncio.run_coroutine_threadsafe(self._write_results(request), self._loop)

    async def _write_results(self, request: ResultRequest) -> None:
        folder = self._context.files.results(request.uri)
        await folder.write(request.folder, request.name, request.data)

    async def _read_file(self, request: FileRequest) -> ObjectStat | bytes:
        files = self._context.files
        if request.part is None:
            return await files.stat(request.uri)
        return await files.read(request.uri, *request.part)

    def _call_step(self, verb: StepVerb, key: str, value: Json) -> _Future:
        steps = self._context.step_store
        future: _Future
        match verb:
            case StepVerb.BEGIN:
                future = steps.begin(key)
            case StepVerb.STORE:
                future = steps.store(key, value)
            case StepVerb.LOAD:
                future = steps.load(key)
            case StepVerb.SLEEP:
                future = steps.sleep(key, float(value) if isinstance(value, int | float) else 0.0)
            case StepVerb.SIGNAL:
                future = steps.signal(key, *protocol.read_signal_value(value))
            case StepVerb.CHILDREN:
                future = steps.children(key, *protocol.read_children_value(value))
            case StepVerb.GIVE_UP:
                future = steps.give_up(key)
        return future

    def _cancel(self, number: int) -> None:
        """Forget a request; a step that is being stored is stored, because its body is over."""
        if number in self._pending:
            request, future = self._pending.pop(number)
            if not isinstance(request, StepRequest) or request.verb in _WAITS:
                future.cancel()

    def _on_done(self, number: int, future: _Future) -> None:
        self._loop.call_soon_threadsafe(self._answer, number, future)

    def _answer(self, number: int, future: _Future) -> None:
        """Send the answer; nothing if it was cancelled, because the handler is stopping by then."""
        request, _ = self._pending.pop(number, (None, None))
        if request is None or future.cancelled():
            return
        self._write(_answer_frame(number, request, future))


def _answer_frame(number: int, request: WorkerRequest, future: _Future) -> bytes:
    error = future.exception()
    if error is not None:
        return encode(protocol.error_message(number, error))
    answer = future.result()
    try:
        return encode(protocol.answer_message(number, _answer_value(request, answer)))
    except FrameError as unsendable:
        return encode(protocol.error_message(number, _unsendable_answer(request, unsendable)))


def _unsendable_answer(request: WorkerRequest, why: FrameError) -> AsyncJobError:
    if isinstance(request, FileRequest):
        return StoreRefusedError(f"cannot read {request.uri}: {why}")
    what = "steps" if isinstance(request, StepRequest) else "child jobs"
    return SubmitError(f"the answer about {what}: {why}")


def _answer_value(request: WorkerRequest, answer: Any) -> Json:
    match request:
        case StepRequest():
            value: Json = answer
            return value
        case FileRequest():
            return protocol.file_answer(answer)
        case ResultRequest():
            return None
        case _:
            return protocol.answer_value(answer)
