"""One attempt from claim to outcome: read the payload, run the handler, decide what it means."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import ValidationError

from asyncjob.app import Handler, JobContext, JobInfo, Resources, WorkerApp, outcomes
from asyncjob.app.child_errors import AttemptOverError
from asyncjob.app.child_jobs import ChildJobs, NoChildJobs
from asyncjob.app.resources import NO_RESOURCES
from asyncjob.app.stop import Stop
from asyncjob.json_types import child, integer
from asyncjob.lifecycle.move import Move
from asyncjob_worker.clock import lease_seconds, now_text
from asyncjob_worker.execution import Execution, Stopped
from asyncjob_worker.held import HeldJob
from asyncjob_worker.offload.objects import ReadObject
from asyncjob_worker.offload.transfers import Transfers
from asyncjob_worker.offload.waiting import Interrupted
from asyncjob_worker.payloads import PayloadError, Payloads, nowhere
from asyncjob_worker.results import Results
from asyncjob_worker.settings import Settings
from asyncjob_worker.starts import Starts, Work
from asyncjob_worker.surround import Surroundings


@dataclass(frozen=True, slots=True)
class Tools:
    """What the attempts of one worker process share."""

    starts: Starts
    payloads: Payloads
    results: Results
    resources: Resources = NO_RESOURCES
    children: Callable[[HeldJob], ChildJobs] = lambda _: NoChildJobs()

    @classmethod
    def of(cls, settings: Settings, read_object: ReadObject = nowhere) -> "Tools":
        """Return the tools of a worker process; `read_object` reads from the API server."""
        transfers = Transfers.of(settings.offload, settings.slots())
        payloads = Payloads(settings.offload, transfers, read_object)
        return cls(Starts.of(settings), payloads, Results(settings, transfers))


class Attempt:
    """Runs the handler of one held job."""

    def __init__(
        self,
        held: HeldJob,
        handler: Handler,
        app: WorkerApp,
        settings: Settings,
        tools: Tools,
        *,
        on_start: Callable[[Work], None] = lambda _: None,
    ) -> None:
        self._held = held
        self._handler = handler
        self._app = app
        self._settings = settings
        self._tools = tools
        self._on_start = on_start
        self._children = tools.children(held)
        self.abandoned: Work | None = None

    async def run(self) -> Move | None:
        """Return the outcome to report; None if the job is no longer ours."""
        job = self._held.job
        try:
            payload = await self._tools.payloads.read(self._held, self._handler)
        except Interrupted as end:
            return self._interrupted(end)
        except PayloadError as error:
            return outcomes.unreadable_payload(job, error, now=now_text())
        except ValidationError as error:
            return outcomes.invalid_payload(job, error, now=now_text())
        except Exception as error:  # noqa: BLE001  # so may a validator of the handler's own
            return self._failed(error)
        return await self._work(payload)

    async def _work(self, payload: object) -> Move | None:
        try:
            result = await self._execute(payload)
        except Stopped as stopped:
            self.abandoned = stopped.work
            return self._stopped(stopped)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001  # a handler may raise anything
            return self._failed(error)
        finally:
            self._children.stop()
        return await self._keep(result)

    async def _keep(self, result: object) -> Move | None:
        try:
            return await self._tools.results.keep(self._held, self._handler, result)
        except Interrupted as end:
            return self._interrupted(end)

    def _stopped(self, stopped: Stopped) -> Move | None:
        return self._ended(stopped.why)

    def _interrupted(self, end: Interrupted) -> Move | None:
        return self._ended(end.why, end.detail)

    def _ended(self, why: Stop, detail: str = "") -> Move | None:
        held, now, draw = self._held, now_text(), random.random()
        return outcomes.stopped(
            held.job, why, refusal=held.refusal, detail=detail, now=now, draw=draw
        )

    def _failed(self, error: BaseException) -> Move:
        draw = random.random()
        return outcomes.failed(
            self._held.job, error, self._app.categories, now=now_text(), draw=draw
        )

    async def _execute(self, payload: object) -> object:
        """Return the handler's result once all that it has submitted is stored."""
        tools, context = self._tools, self._context()
        around = Surroundings(self._app, tools.starts, tools.resources)
        execution = Execution(self._held, context, around, self._on_start)
        result = await execution.run(self._handler, payload, self._settings.stop_wait)
        await self._settle(context)
        return result

    async def _settle(self, context: JobContext) -> None:
        """Wait for what the handler has submitted and not waited for; the attempt's limits hold."""
        held = self._held
        try:
            await context.settle()
        except AttemptOverError:
            if lease_seconds() >= held.times_out_at:
                held.stop(Stop.TIMED_OUT)
            if held.stopped is None:
                raise
        if held.stopped is not None:
            raise Stopped(held.stopped, None)

    def _context(self) -> JobContext:
        held = self._held
        return JobContext(
            describe(held),
            held,
            remaining=lambda: held.times_out_at - lease_seconds(),
            max_bytes=self._settings.max_free_json,
            children=self._children,
        )


def describe(held: HeldJob) -> JobInfo:
    """Return what the handler is told of the job."""
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
    )
