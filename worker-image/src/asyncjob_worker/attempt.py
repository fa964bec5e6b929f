"""One attempt from claim to outcome: read the payload, run the handler, decide what it means."""

import asyncio
import random
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
    ) -> None:
        self._held = held
        self._handler = handler
        self._categories = app.categories
        self._settings = settings
        self._threads = threads
        self.abandoned: Work | None = None

    async def run(self) -> Move | None:
        """Return the outcome to report; None if the job is no longer ours."""
        job, now = self._held.job, now_text
        try:
            payload = self._handler.read_payload(self._held.spec.get("payload"))
        except ValidationError as error:
            return outcomes.invalid_payload(job, error, now=now())
        try:
            result = await self._execute(payload)
        except Stopped as stopped:
            self.abandoned = stopped.work
            return outcomes.stopped(job, stopped.why, now=now(), draw=random.random())
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001  # a handler may raise anything
            return outcomes.failed(job, error, self._categories, now=now(), draw=random.random())
        limit = self._settings.max_free_json
        return outcomes.succeeded(job, self._handler, result, max_bytes=limit, now=now())

    async def _execute(self, payload: object) -> object:
        execution = Execution(self._held, self._context(), self._threads)
        return await execution.run(self._handler, payload, self._settings.stop_wait)

    def _context(self) -> JobContext:
        held = self._held
        return JobContext(
            describe(held), held, remaining=lambda: held.times_out_at - lease_seconds()
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
    )
