"""Writes a job's outcome: one write, tried until it is stored or the job is no longer ours."""

import asyncio
from collections.abc import Callable
from enum import StrEnum

import structlog

from asyncjob.errors import ApiError, NotFoundError, TooLargeError, UnauthorizedError
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.kube.backoff import Backoff
from asyncjob.lifecycle.move import Move, json_patch, render
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import job_path
from asyncjob_worker.clock import lease_seconds
from asyncjob_worker.held import HeldJob

log = structlog.get_logger()


class Standing(StrEnum):
    """What a fresh read says of our claim on a job."""

    HELD = "held"
    DONE = "done"
    FENCED = "fenced"
    UNKNOWN = "unknown"


async def standing(session: KubeSession, held: HeldJob) -> Standing:
    """Read the job: still ours, already ended by our claim, somebody else's, or no answer."""
    try:
        job = await session.get(job_path(held.job.namespace, held.job.name))
    except (NotFoundError, UnauthorizedError):
        return Standing.FENCED
    except ApiError:
        return Standing.UNKNOWN
    status = child(job, "status")
    same_job = text(child(job, "metadata"), "uid") == held.job.uid
    if not same_job or text(status, "claim") != text(held.status, "claim"):
        return Standing.FENCED
    return Standing.HELD if text(status, "phase") == Phase.RUNNING else Standing.DONE


def outcome_body(held: HeldJob, move: Move) -> list[JsonObject]:
    """Return the JSON Patch that carries an outcome and what the handler reported last."""
    unsaved = held.unsaved()
    fields = {**(unsaved.fields() if unsaved else {}), **render(move, held.status)}
    return [*held.fence(), *json_patch(fields, {**held.status, "lease": {}})]


class Reporter:
    """Reports outcomes for one worker process."""

    def __init__(self, session: KubeSession, refused: Callable[[HeldJob, str], Move]) -> None:
        self._session = session
        self._refused = refused

    async def report(self, held: HeldJob, move: Move) -> bool:
        """Store the outcome; returns whether it is stored.

        False means fenced: another claim, or the operator, decided meanwhile. An outcome the store
        can never take is replaced by the refusal that says why.
        """
        backoff = Backoff(initial=0.1, cap=5.0)
        while True:
            try:
                await self._session.json_patch(held.status_path, outcome_body(held, move))
            except TooLargeError as error:
                move = self._refused(held, f"the store cannot take the result: {error}")
            except ApiError as error:
                known = await self._after_error(held, move, error)
                if known is not None:
                    return known
            else:
                return True
            await asyncio.sleep(backoff.pause())

    async def _after_error(self, held: HeldJob, move: Move, error: ApiError) -> bool | None:
        now = await standing(self._session, held)
        if now is Standing.DONE:
            return True
        if now is Standing.FENCED:
            log.warning("fenced: outcome not written", job=held.job.name, outcome=move.target)
            return False
        if lease_seconds() > held.ends_at:
            log.error("outcome lost with the lease", job=held.job.name, error=str(error))
            return False
        log.warning("outcome not stored yet", job=held.job.name, error=str(error))
        return None
