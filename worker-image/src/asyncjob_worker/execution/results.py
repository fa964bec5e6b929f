"""Turns what a handler returns into an outcome.

The result is stored in the job, or as an object in a store if it is large. If it cannot be stored,
the outcome is a failure that says why.
"""

from collections.abc import Collection
from typing import Final

import orjson
import structlog

from asyncjob.app import Handler, outcomes
from asyncjob.daemon_threads import run_in_daemon_thread
from asyncjob.free_json import FreeJsonError, TooManyBytesError
from asyncjob.lifecycle import phase_change
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.offload import OffloadError
from asyncjob.offload.addresses import result_address
from asyncjob.offload.transfer import result_reference
from asyncjob_worker.clock import now_text
from asyncjob_worker.execution.io_retry import RetriedCall
from asyncjob_worker.execution.object_store import ObjectStoreClient
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.settings import Settings

log = structlog.get_logger()

MAX_STORE_REFUSALS: Final = 4
"""After this many refusals by the store a result counts as refused."""

_MANY_PARTS: Final = 2000
_LONG_TEXT: Final = 64 * 1024
"""Beyond either a result is encoded in a thread: they bound for how long the event loop encodes one
itself. No more than that is looked at to decide it."""

_SCALARS: Final = frozenset({int, float, bool, type(None)})


class ResultStore:
    """Stores results for one worker process."""

    def __init__(self, settings: Settings, object_store: ObjectStoreClient) -> None:
        self._max_bytes = settings.max_free_json
        self._offload = settings.offload
        self._drain_grace = settings.stop_grace_seconds
        self._object_store = object_store

    async def store(self, held: HeldJob, handler: Handler, result: object) -> PhaseChange:
        """Return the outcome: success, or the failure of a result that cannot be stored.

        Raises AttemptStopped if the attempt has to stop before a large result is stored.
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
            return phase_change.succeed(held.job, now=now_text(), result=orjson.loads(data))
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
        upload = RetriedCall(
            held,
            "the result could not be stored",
            lambda: self._object_store.write(address, data, root),
            refusals=MAX_STORE_REFUSALS,
        )
        try:
            await upload.run(drain_grace=self._drain_grace)
        except OffloadError as error:
            return self._refused_outcome(held, f"the result has {len(data)} bytes, but {error}")
        log.info("result offloaded", job=job.name, uri=reference.uri, size=len(data))
        plain = reference.model_dump(mode="json", by_alias=True)
        return phase_change.succeed(job, now=now_text(), result_ref=plain)

    def _refused_outcome(self, held: HeldJob, message: str) -> PhaseChange:
        return outcomes.result_refused(held.job, message, now=now_text())


def looks_large(value: object) -> bool:
    """Return whether the value has many parts or long texts, at a bounded cost.

    Such values are encoded in a thread.
    """
    waiting: list[object] = [value]
    parts = length = 0
    for item in waiting:  # grows during the loop
        type_ = type(item)
        if type_ in _SCALARS:
            continue
        if isinstance(item, str | bytes):
            length += len(item)
        else:
            inner = _parts_of(item)
            parts += len(inner)
            if parts <= _MANY_PARTS:
                waiting += inner
        if parts > _MANY_PARTS or length > _LONG_TEXT:
            return True
    return False


def _parts_of(item: object) -> Collection[object]:
    if isinstance(item, dict):
        return item.values()
    if isinstance(item, list | tuple | set | frozenset):
        return item
    fields: dict[str, object] = getattr(item, "__dict__", {})
    return fields.values()
