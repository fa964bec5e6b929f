"""The steps of one attempt: whether the job has room for them, and where their results are kept.

Called from the handler's thread, works in the event loop, one write after the other. A result goes
into the job, or as an object into the store if it is large or the job is full; a job that can keep
neither ends with ResultRefused. An attempt that was asked to stop begins no step, but a step whose
body is over is still stored: its lease is held until the outcome is written.
"""

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import structlog

from asyncjob.app.child_jobs import ChildRef
from asyncjob.app.context import Stop
from asyncjob.app.errors import AttemptOverError, StepError, StepRefusedError
from asyncjob.app.outcomes import OFFLOAD_HINT
from asyncjob.daemon_threads import run_in_daemon_thread
from asyncjob.errors import AsyncJobError, InvalidError, TooLargeError
from asyncjob.free_json import parse, size_of
from asyncjob.json_text import dumps
from asyncjob.json_types import Json, JsonObject, as_object, child
from asyncjob.kube.pacing import ExponentialBackoff
from asyncjob.lifecycle.step_records import (
    STEP_RECORD_BYTES,
    inline_bytes,
    step_record,
    steps_of,
    why_no_room,
    why_not_inline,
)
from asyncjob.models.job_status import ResultReference
from asyncjob.offload import Address, AllowList, OffloadError
from asyncjob.offload.addresses import RESULTS_FOLDER, step_address
from asyncjob.offload.transfer import check_digest, result_reference
from asyncjob_worker.clock import boottime, now_text
from asyncjob_worker.execution.attempt_waits import AttemptWaits, WaitServices
from asyncjob_worker.execution.children.awaited_children import AttemptChildren
from asyncjob_worker.execution.object_store import ObjectStoreClient
from asyncjob_worker.execution.results import MAX_STORE_REFUSALS, looks_large
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.step_writer import StepWriter
from asyncjob_worker.settings import OffloadSettings

log = structlog.get_logger()

T = TypeVar("T")

SETTLE_SECONDS: Final = 2.0
"""How long a handler's end waits for steps that are being stored: their bodies are over, and would
run again. A write takes milliseconds; an API server that is away must not hold up the outcome, for
which a worker that drains has RELEASE_SECONDS in all."""


@dataclass(frozen=True, slots=True)
class StepServices:
    """What the steps of one worker process share; `on_stored` gets a job's type and seconds."""

    writer: StepWriter
    offload: OffloadSettings
    object_store: ObjectStoreClient
    on_stored: Callable[[str, float], None]
    waits: WaitServices
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep


class AttemptSteps:
    """Keeps the results of one held job's steps; made in any thread. `loop` is the worker's."""

    def __init__(
        self,
        services: StepServices,
        held: HeldJob,
        loop: asyncio.AbstractEventLoop,
        children: AttemptChildren,
    ) -> None:
        self._services = services
        self._held = held
        self._loop = loop
        self._lock = asyncio.Lock()
        self._kept = dict(steps_of(held.status))
        self._inline = inline_bytes(self._kept)
        self._first_bytes = size_of([held.metadata, held.spec, held.status])
        self._added_bytes = 0
        self._begun: dict[str, tuple[str, float]] = {}
        self._in_flight: set[concurrent.futures.Future[Any]] = set()
        self._waiting: set[concurrent.futures.Future[Any]] = set()
        self.waits = AttemptWaits(services.waits, held, self._lock, children)

    def begin(self, key: str) -> "concurrent.futures.Future[None]":
        """Check that the step may be taken and that the job has room for it."""
        return self._start(self._begin(key))

    def store(self, key: str, value: Json) -> "concurrent.futures.Future[None]":
        """Keep the result of a step that has been begun."""
        return self._start(self._store(key, value))

    def load(self, key: str) -> "concurrent.futures.Future[Json]":
        """Return the result of a step that is done and whose result is in the object store."""
        return self._start(self._load(key))

    def sleep(self, key: str, seconds: float) -> "concurrent.futures.Future[float]":
        """Return 0 once the sleep is over, or the seconds left of it: the attempt is to park."""
        return self._wait(self.waits.sleep(key, seconds))

    def signal(
        self, name: str, seconds: float | None, payload_schema: JsonObject | None
    ) -> "concurrent.futures.Future[JsonObject]":
        """Return what has become of the wait for a signal, see `SignalAnswer`."""
        return self._wait(self._signal(name, seconds, payload_schema))

    async def _signal(
        self, name: str, seconds: float | None, payload_schema: JsonObject | None
    ) -> JsonObject:
        return (await self.waits.signal(name, seconds, payload_schema)).to_json()

    def children(
        self, key: str, children: Sequence[ChildRef], seconds: float | None
    ) -> "concurrent.futures.Future[JsonObject]":
        """Return what has become of the wait for children, see `ChildrenAnswer`."""
        return self._wait(self._children(key, children, seconds))

    async def _children(
        self, key: str, children: Sequence[ChildRef], seconds: float | None
    ) -> JsonObject:
        return (await self.waits.children(key, children, seconds)).to_json()

    def give_up(self, key: str) -> "concurrent.futures.Future[None]":
        """Take a wait out of what the job may be parked for."""
        return self._start(self._give_up(key))

    async def _give_up(self, key: str) -> None:
        self.waits.give_up(key)

    def _wait(self, work: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._waiting.add(future)
        future.add_done_callback(self._waiting.discard)
        return future

    async def settle(self) -> None:
        """Wait until what is being stored is stored, for a while; the handler is over."""
        self.waits.close()
        for waiting in tuple(self._waiting):
            waiting.cancel()
        if self._held.stopped is not Stop.FENCED:
            await self.waits.settle(SETTLE_SECONDS)
        pending = {asyncio.wrap_future(one) for one in tuple(self._in_flight)}
        if pending and self._held.stopped is not Stop.FENCED:
            _, pending = await asyncio.wait(pending, timeout=SETTLE_SECONDS)
        for future in pending:
            future.cancel()

    def _start(self, work: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._in_flight.add(future)
        future.add_done_callback(self._in_flight.discard)
        return future

    async def _begin(self, key: str) -> None:
        held = self._held
        over = held.stopped is not None or held.writing_outcome
        if over or boottime() >= min(held.lease_expires_at, held.ends_at):
            why = held.stopped.value if held.stopped else "it has ended"
            raise AttemptOverError(f"the attempt is over ({why}): step {key!r} is not begun")
        if why := why_no_room(key, self._job_bytes()):
            raise StepRefusedError(why)
        self._begun[key] = now_text(), boottime()

    async def _store(self, key: str, value: Json) -> None:
        started, since = self._begun.pop(key, (now_text(), boottime()))
        size = await _in_thread_if(looks_large(value), lambda: size_of(value))
        async with self._lock:
            await self._write(key, value, size, started)
        self._services.on_stored(self._held.job.type, boottime() - since)

    async def _write(self, key: str, value: Json, size: int, started: str) -> None:
        why = why_not_inline(key, size, inline=self._inline, job_bytes=self._job_bytes())
        if not why:
            try:
                await self._write_record(key, size, started, result=value)
            except TooLargeError as error:
                why = f"the result of step {key!r} has {size} bytes, and {error}"
            else:
                self._inline += size
                self._added_bytes += size
                return
        reference = await self._upload(key, value, why)
        try:
            await self._write_record(key, size, started, result_ref=reference)
        except TooLargeError as error:
            raise StepRefusedError(f"step {key!r} cannot be kept: {error}") from error

    async def _write_record(self, key: str, size: int, started: str, **result: Json) -> None:
        attempt = self._held.job.attempt
        record = step_record(attempt=attempt, started=started, now=now_text(), size=size, **result)
        try:
            await self._services.writer.write(self._held, key, record, first=not self._kept)
        except InvalidError as error:
            raise StepRefusedError(f"the API server refuses step {key!r}: {error}") from error
        self._kept[key] = record
        self._added_bytes += STEP_RECORD_BYTES

    async def _upload(self, key: str, value: Json, why: str) -> JsonObject:
        """Write the result to the object store, and return what `resultRef` says of it."""
        root, held = self._services.offload.url, self._held
        if root is None:
            raise StepRefusedError(why + OFFLOAD_HINT)
        data = await _in_thread_if(looks_large(value), lambda: dumps(value))
        if len(data) > self._services.offload.limit:
            raise StepRefusedError(f"{why}, the store takes {self._services.offload.limit}")
        address = step_address(
            root,
            namespace=held.job.namespace,
            uid=held.job.uid,
            attempt=held.job.attempt,
            claim=held.claim,
            key=key,
        )
        try:
            await self._retried(key, lambda: self._services.object_store.write(address, data, root))
        except OffloadError as error:
            raise StepRefusedError(f"{why}, but {error}") from error
        reference = await _in_thread_if(looks_large(value), lambda: result_reference(address, data))
        log.info("result of a step offloaded", job=held.job.name, step=key, uri=reference.uri)
        return reference.model_dump(mode="json", by_alias=True)

    async def _load(self, key: str) -> Json:
        record = as_object(self._kept.get(key))
        try:
            reference = ResultReference.model_validate(child(record, "resultRef"))
            address = Address.parse(reference.uri)
            roots = self._own_results()
            data = await self._retried(
                key, lambda: self._services.object_store.read(address, roots)
            )
            check_digest(address, data, reference.sha256)
            return parse(data, what=f"the result of step {key!r}")
        except (AsyncJobError, ValueError) as error:
            if isinstance(error, AttemptOverError):
                raise
            raise StepError(f"the kept result of step {key!r} cannot be read: {error}") from error

    def _own_results(self) -> AllowList:
        url = self._services.offload.url
        if url is None:
            return AllowList(())
        return AllowList((url.join(RESULTS_FOLDER, self._held.job.namespace),))

    async def _retried(self, key: str, call: Callable[[], Awaitable[T]]) -> T:
        """Return what a request to the object store gives; tried for as long as the lease lasts."""
        backoff, refusals = ExponentialBackoff(initial=0.5, cap=10.0), 0
        while True:
            try:
                return await call()
            except OffloadError as error:
                refusals += not error.retryable
                if refusals >= MAX_STORE_REFUSALS:
                    raise
                log.warning("result of a step not stored yet", step=key, error=str(error))
            if self._held.stopped is not None:
                raise AttemptOverError(f"the attempt has to stop: step {key!r} is not stored")
            await self._services.pause(backoff.next_delay())

    def _job_bytes(self) -> int:
        """Return the size of the whole job, as far as this worker knows it."""
        report = self._held.latest_report
        checkpoint = size_of(report.checkpoint) if report.checkpoint_version else 0
        return self._first_bytes + self._added_bytes + checkpoint


async def _in_thread_if(large: bool, call: Callable[[], T]) -> T:  # noqa: FBT001  # what it is about
    return await run_in_daemon_thread(call, "encoding") if large else call()
