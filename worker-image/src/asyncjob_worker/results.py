"""Turns what a handler returns into the outcome to report: where the result is kept, or why not."""

from typing import Final

import orjson
import structlog

from asyncjob.app import Handler, outcomes
from asyncjob.app.threads import run_in_daemon_thread
from asyncjob.free_json import FreeJsonError, TooManyBytesError
from asyncjob.lifecycle import outcome
from asyncjob.lifecycle.move import PhaseChange
from asyncjob.offload import OffloadError
from asyncjob.offload.exchange import result_reference
from asyncjob.offload.naming import result_address
from asyncjob_worker.clock import now_text
from asyncjob_worker.held import HeldJob
from asyncjob_worker.offload.sizes import looks_large
from asyncjob_worker.offload.transfers import ObjectStoreClient
from asyncjob_worker.offload.tries import RetriedCall
from asyncjob_worker.settings import Settings

log = structlog.get_logger()

MAX_STORE_REFUSALS: Final = 4
"""A result that the store refuses so often is refused for good."""


class ResultStore:
    """Keeps results for one worker process."""

    def __init__(self, settings: Settings, object_store: ObjectStoreClient) -> None:
        self._max_bytes = settings.max_free_json
        self._offload = settings.offload
        self._drain_grace = settings.stop_wait
        self._object_store = object_store

    async def store(self, held: HeldJob, handler: Handler, result: object) -> PhaseChange:
        """Return success, or the refusal of a result that cannot be kept.

        Raises Interrupted if the attempt has to stop before a large result is stored.
        """
        try:
            data = await self._encode(handler, result)
        except TooManyBytesError as error:
            return self._refused_outcome(
                held, str(error) + ("" if self._offload.url else outcomes.OFFLOAD_HINT)
            )
        except FreeJsonError as error:
            return self._refused_outcome(held, str(error))
        if len(data) <= self._max_bytes:
            return outcome.succeed(held.job, now=now_text(), result=orjson.loads(data))
        return await self._upload(held, data)

    async def _encode(self, handler: Handler, result: object) -> bytes:
        if self._offload.url is None:
            return outcomes.encode_result(handler, result, max_bytes=self._max_bytes)
        limit = max(self._max_bytes, self._offload.limit)
        if looks_large(result):
            return await run_in_daemon_thread(
                lambda: outcomes.encode_result(handler, result, max_bytes=limit), "encoding"
            )
        return outcomes.encode_result(handler, result, max_bytes=limit)

    async def _upload(self, held: HeldJob, data: bytes) -> PhaseChange:
        root, job = self._offload.url, held.job
        assert root is not None
        address = result_address(
            root, namespace=job.namespace, uid=job.uid, attempt=job.attempt, claim=held.claim
        )
        reference = await run_in_daemon_thread(lambda: result_reference(address, data), "digest")
        tries = RetriedCall(
            held,
            "the result could not be stored",
            lambda: self._object_store.write(address, data, root),
            refusals=MAX_STORE_REFUSALS,
        )
        try:
            await tries.run(drain_grace=self._drain_grace)
        except OffloadError as error:
            return self._refused_outcome(held, f"the result has {len(data)} bytes, but {error}")
        log.info("result offloaded", job=job.name, uri=reference.uri, size=len(data))
        plain = reference.model_dump(mode="json", by_alias=True)
        return outcome.succeed(job, now=now_text(), result_ref=plain)

    def _refused_outcome(self, held: HeldJob, message: str) -> PhaseChange:
        return outcomes.result_refused(held.job, message, now=now_text())
