"""One attempt from claim to outcome: read the payload, run the handler, decide what it means."""

import asyncio
import random
from collections.abc import Callable
from concurrent.futures import Executor

from pydantic import ValidationError

from asyncjob.app import Handler, JobContext, JobInfo, WorkerApp
from asyncjob.json_types import child, opt_text
from asyncjob.lifecycle.move import Move
from asyncjob_worker import outcomes
from asyncjob_worker.clock import lease_seconds, now_text
from asyncjob_worker.execution import Execution, Stopped, Work
from asyncjob_worker.held import HeldJob
from asyncjob_worker.settings import Settings


class Attempt:
    """Runs the handler of one held job."""

    def __init__(
        self,
        held: HeldJob,
        handler: Handler,
        app: WorkerApp,
        settings: Settings,
        threads: Executor,
        *,
        on_start: Callable[[Work], None] = lambda _: None,
    ) -> None:
        self._held = held
        self._handler = handler
        self._categories = app.categories
        self._settings = settings
        self._threads = threads
        self._on_start = on_start
        self.abandoned: Work | None = None

    async def run(self) -> Move | None:
        """Return the outcome to report; None if the job is no longer ours."""
        job, spec = self._held.job, self._held.spec
        if "payloadFrom" in spec:
            return outcomes.payload_not_here(job, now=now_text())
        try:
            payload = self._handler.read_payload(spec.get("payload"))
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
        limit = self._settings.max_free_json
        return outcomes.succeeded(
            self._held.job, self._handler, result, max_bytes=limit, now=now_text()
        )

    def _stopped(self, stopped: Stopped) -> Move | None:
        held, draw = self._held, random.random()
        return outcomes.stopped(
            held.job, stopped.why, refusal=held.refusal, now=now_text(), draw=draw
        )

    def _failed(self, error: BaseException) -> Move:
        draw = random.random()
        return outcomes.failed(self._held.job, error, self._categories, now=now_text(), draw=draw)

    async def _execute(self, payload: object) -> object:
        execution = Execution(self._held, self._context(), self._threads, self._on_start)
        return await execution.run(self._handler, payload, self._settings.stop_wait)

    def _context(self) -> JobContext:
        held = self._held
        return JobContext(
            describe(held),
            held,
            remaining=lambda: held.times_out_at - lease_seconds(),
            max_bytes=self._settings.max_free_json,
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
        traceparent=opt_text(held.spec, "traceparent"),
        scheduled_time=held.scheduled_time,
    )
