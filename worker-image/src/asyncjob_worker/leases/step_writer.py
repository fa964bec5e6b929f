"""Writes the record of a step or wait: one write, tried until it is stored or the job is not ours.

Whether a failed write was stored all the same is decided by reading the job again, as for outcomes.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from asyncjob.app.context import Stop
from asyncjob.app.errors import AttemptOverError
from asyncjob.errors import ApiError, InvalidError, TooLargeError
from asyncjob.json_types import JsonObject, child
from asyncjob.kube import KubeSession
from asyncjob.kube.pacing import ExponentialBackoff
from asyncjob_worker.clock import boottime, now_text
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.ownership import Ownership, check_ownership
from asyncjob_worker.leases.patches import step_patch

log = structlog.get_logger()


class StepWriter:
    """Writes steps for one worker process."""

    def __init__(
        self, session: KubeSession, pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._session = session
        self._pause = pause

    async def write(
        self, held: HeldJob, key: str, record: JsonObject, *, first: bool, field: str = "steps"
    ) -> None:
        """Store the record in a field of the status; `first` where the job has none there yet.

        Raises AttemptOverError if the job is no longer ours, and InvalidError or TooLargeError if
        the API server refuses the record.
        """
        backoff = ExponentialBackoff(initial=0.1, cap=5.0)
        while not await self._try_once(held, field, key, record, first=first):
            await self._pause(backoff.next_delay())

    async def _try_once(
        self, held: HeldJob, field: str, key: str, record: JsonObject, *, first: bool
    ) -> bool:
        """Return whether the record is stored; False: it has to be tried again."""
        if held.stopped is Stop.FENCED or boottime() > held.lease_expires_at:
            raise AttemptOverError(f"step {key!r} is not stored: the lease may have ended")
        try:
            stored = await self._session.json_patch(
                held.status_path, step_patch(held, field, key, record, now_text(), first=first)
            )
        except ApiError as error:
            return await self._after_error(held, field, key, record, error)
        if "status" in stored and key not in child(child(stored, "status"), field):
            # An older CRD: the API server drops what it does not know, and says nothing.
            raise InvalidError(
                f"the CRD asyncjobs.asyncjob.dev does not know status.{field}: apply the CRDs and "
                "policies of this release"
            )
        return True

    async def _after_error(
        self, held: HeldJob, field: str, key: str, record: JsonObject, error: ApiError
    ) -> bool:
        check = await check_ownership(self._session, held)
        match check.ownership:
            case Ownership.FENCED | Ownership.LEFT:
                log.warning("fenced: the job is no longer ours, step not stored", step=key)
                held.stop(Stop.FENCED)
                raise AttemptOverError(f"step {key!r} is not stored: the job is no longer ours")
            case Ownership.HELD if child(check.status, field).get(key) == record:
                return True
            case Ownership.HELD if isinstance(error, InvalidError | TooLargeError):
                raise error
        log.warning("step not stored yet", step=key, error=str(error))
        return False
