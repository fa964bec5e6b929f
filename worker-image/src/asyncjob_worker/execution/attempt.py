"""One attempt from claim to outcome: read the payload, run the handler, decide the outcome."""

import asyncio
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import ValidationError

from asyncjob.app import Handler, JobContext, JobInfo, Resources, WorkerApp, outcomes
from asyncjob.app.context import Stop
from asyncjob.app.errors import AttemptOverError
from asyncjob.app.resources import NO_RESOURCES
from asyncjob.json_types import child, integer
from asyncjob.lifecycle import phase_change
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.step_records import steps_of
from asyncjob.lifecycle.waits import first_waits, waits_of
from asyncjob_worker.clock import boottime, now_text
from asyncjob_worker.execution.attempt_steps import AttemptSteps, StepServices
from asyncjob_worker.execution.attempt_waits import MayPark, WaitServices
from asyncjob_worker.execution.children.awaited_children import AttemptChildren
from asyncjob_worker.execution.handler_record import HandlerRecorder
from asyncjob_worker.execution.handler_task import HandlerStopped, HandlerTask, MiddlewareStarter
from asyncjob_worker.execution.io_retry import AttemptStopped
from asyncjob_worker.execution.object_store import AllowedFiles, ObjectStoreClient
from asyncjob_worker.execution.payloads import PayloadError, PayloadReader, ReadObject
from asyncjob_worker.execution.results import ResultStore
from asyncjob_worker.isolation.executor import HandlerExecutor, HandlerFuture
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.step_writer import StepWriter
from asyncjob_worker.settings import Settings


@dataclass(frozen=True, slots=True)
class AttemptServices:
    """What the attempts of one worker process share; `children` makes the child jobs of each."""

    executor: HandlerExecutor
    payloads: PayloadReader
    results: ResultStore
    children: Callable[[HeldJob], AttemptChildren]
    steps: StepServices
    object_store: ObjectStoreClient
    resources: Resources = NO_RESOURCES
    record: HandlerRecorder | None = None

    @classmethod
    def from_settings(
        cls,
        settings: Settings,
        read_object: ReadObject,
        children: Callable[[HeldJob], AttemptChildren],
        *,
        record: HandlerRecorder | None,
        step_writer: StepWriter,
        may_park: MayPark,
        server_time: Callable[[], float],
        on_step_stored: Callable[[str, float], None],
    ) -> "AttemptServices":
        """Return the services of a worker process; `read_object` reads from the API server."""
        object_store = ObjectStoreClient.from_settings(settings.offload, settings.slots())
        return cls(
            HandlerExecutor.from_settings(settings),
            PayloadReader(settings.offload, object_store, read_object),
            ResultStore(settings, object_store),
            children,
            StepServices(
                step_writer,
                settings.offload,
                object_store,
                on_step_stored,
                WaitServices(step_writer, may_park, server_time, read_object),
            ),
            object_store,
            record=record,
        )


class Attempt:
    """Runs the handler of one held job.

    `on_start` is called when the handler has been started. `abandoned` is the handler that has
    ignored its stop and still runs, after `run`.
    """

    def __init__(
        self,
        held: HeldJob,
        handler: Handler,
        app: WorkerApp,
        settings: Settings,
        services: AttemptServices,
        *,
        on_start: Callable[[HandlerFuture], None],
    ) -> None:
        self._held = held
        self._handler = handler
        self._app = app
        self._settings = settings
        self._services = services
        self._on_start = on_start
        self._children = services.children(held)
        self._steps: AttemptSteps | None = None
        self._opening = threading.Lock()
        self._loop = asyncio.get_running_loop()
        self.abandoned: HandlerFuture | None = None

    async def run(self) -> PhaseChange | None:
        """Return the outcome to write; None if the job is no longer ours."""
        job = self._held.job
        try:
            payload = await self._services.payloads.read(self._held, self._handler)
        except AttemptStopped as stopped:
            return self._stop_outcome(stopped.why, stopped.detail)
        except PayloadError as error:
            return outcomes.unreadable_payload(job, error, now=now_text())
        except ValidationError as error:
            return outcomes.invalid_payload(job, error, now=now_text())
        except Exception as error:  # noqa: BLE001  # the handler's own validators may raise anything
            return self._failure_outcome(error)
        return await self._run_handler(payload)

    def open_steps(self) -> AttemptSteps:
        """Return what keeps the results of steps, made for the first: most jobs have none.

        Called from the handler's threads.
        """
        with self._opening:
            if self._steps is None:
                self._steps = AttemptSteps(
                    self._services.steps, self._held, self._loop, self._children
                )
            return self._steps

    async def _run_handler(self, payload: object) -> PhaseChange | None:
        try:
            result = await self._call_handler(payload)
        except HandlerStopped as stopped:
            self.abandoned = stopped.future
            return self._stop_outcome(stopped.why)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001  # a handler may raise anything
            if (steps := self._steps_to_park_with(error)) is not None:
                await steps.settle()  # what it has marked is part of what it leaves
                return self._park_outcome(steps)
            return self._failure_outcome(error)
        finally:
            self._children.stop()
            if self._steps is not None:
                await self._steps.settle()
        return await self._store_result(result)

    async def _call_handler(self, payload: object) -> object:
        """Return the handler's result once all child jobs that it has submitted are stored.

        They are stored, too, before it raises what the job is parked for.
        """
        services, context = self._services, self._build_context()
        starter = MiddlewareStarter(self._app, services.executor, services.resources)
        task = HandlerTask(self._held, context, starter, self._on_start)
        try:
            result = await task.run(self._handler, payload, self._settings.stop_grace_seconds)
        except BaseException as error:
            if self._steps_to_park_with(error) is None:
                raise
            parked = error
        else:
            await self._await_submissions(context)
            return result
        await self._await_submissions(context, parking=True)
        raise parked

    def _steps_to_park_with(self, error: BaseException) -> AttemptSteps | None:
        """Return the steps with the waits that the job is to be parked for, None if it is not."""
        steps = self._steps
        return steps if outcomes.asks_to_park(error) and steps and steps.waits.open else None

    async def _await_submissions(self, context: JobContext, *, parking: bool = False) -> None:
        """Wait until the submitted child jobs are stored, within the attempt's limits."""
        held = self._held
        limit = asyncio.timeout(held.ends_at - boottime())
        try:
            async with limit:
                await context.wait_for_submissions(parking=parking)
        except (AttemptOverError, TimeoutError):
            if limit.expired() or boottime() >= held.ends_at:
                held.stop_at_end()
            if held.stopped is None:
                raise
        if held.stopped is not None:
            raise HandlerStopped(held.stopped, None)

    def _build_context(self) -> JobContext:
        held, record = self._held, self._services.record
        return JobContext(
            job_info_of(held),
            held if record is None else record.report_sink(held),
            remaining=lambda: held.ends_at - boottime(),
            max_bytes=self._settings.max_free_json,
            children=self._children,
            steps=self,
            files=AllowedFiles(
                self._services.object_store, self._settings.offload, held.job.namespace
            ),
        )

    async def _store_result(self, result: object) -> PhaseChange | None:
        try:
            return await self._services.results.store(self._held, self._handler, result)
        except AttemptStopped as stopped:
            return self._stop_outcome(stopped.why, stopped.detail)

    def _stop_outcome(self, why: Stop, detail: str = "") -> PhaseChange | None:
        held, now, jitter_sample = self._held, now_text(), random.random()
        return outcomes.stopped(
            held.job, why, refusal=held.refusal, detail=detail, now=now, jitter_sample=jitter_sample
        )

    def _park_outcome(self, steps: AttemptSteps) -> PhaseChange:
        waits = steps.waits
        waiting = first_waits(waits.open)
        return phase_change.park(self._held.job, waits.records, waiting, now=now_text())

    def _failure_outcome(self, error: BaseException) -> PhaseChange:
        jitter_sample = random.random()
        return outcomes.failed(
            self._held.job, error, self._app.categories, now=now_text(), jitter_sample=jitter_sample
        )


def job_info_of(held: HeldJob) -> JobInfo:
    """Return what the handler gets to know about the job."""
    job = held.job
    return JobInfo(
        namespace=job.namespace,
        name=job.name,
        uid=job.uid,
        type=job.type,
        queue=job.queue,
        attempt=job.attempt,
        retries=job.retries,
        max_retries=held.policy.max_retries,
        last_checkpoint=held.status.get("checkpoint"),
        request=child(held.spec, "request"),
        traceparent=held.traceparent,
        priority=integer(held.spec, "priority"),
        parent=held.parent,
        scheduled_time=held.scheduled_time,
        steps=steps_of(held.status),
        waits=waits_of(held.status),
        parks=job.parks,
        created_at=job.creation_timestamp,
    )
