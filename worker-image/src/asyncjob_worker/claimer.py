"""Claims jobs: one conditional write each; whoever loses does no work."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from asyncjob.app import WorkerApp
from asyncjob.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    TooLargeError,
    UnknownOutcomeError,
)
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.kube.backoff import Backoff
from asyncjob.lifecycle.claim import Candidate, Holder, claim_body
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.policy import EffectivePolicy, resolve
from asyncjob.names import job_path, job_status_path
from asyncjob_worker.clock import lease_seconds, now_text
from asyncjob_worker.enforcement import Enforcement, is_by_policy
from asyncjob_worker.errors import HeartbeatsLateError
from asyncjob_worker.held import HeldJob
from asyncjob_worker.lateness import Lateness
from asyncjob_worker.queue_view import QueueView

log = structlog.get_logger()


@dataclass(slots=True)
class ClaimCounts:
    """What became of the claims so far."""

    won: int = 0
    conflicts: int = 0
    refused: int = 0
    postponed: int = 0


@dataclass(slots=True)
class _Try:
    """One claim, sent until it is answered: the same body each time, so that it counts once."""

    candidate: Candidate
    token: str
    path: str
    body: JsonObject
    first_sent_at: float
    give_up_at: float
    doubtful: bool = False


class Claimer:
    """Claims for one worker process."""

    def __init__(
        self,
        session: KubeSession,
        app: WorkerApp,
        queue: QueueView,
        holder: Holder,
        enforcement: Enforcement,
        *,
        lateness: Lateness,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._session = session
        self._app = app
        self._queue = queue
        self._holder = holder
        self._enforcement = enforcement
        self._lateness = lateness
        self._pause = pause
        self.counts = ClaimCounts()

    async def claim(self, candidate: Candidate) -> HeldJob | None:
        """Return the job if it is ours now, None if it is not.

        Raises ApiError where no claim can succeed: no permission, or the API server is away;
        HeartbeatsLateError where this process could not keep the lease; and PolicyMissingError
        before the first claim, where ownership is not enforced.
        """
        self._check_lease(candidate)
        if not await self._enforcement.is_proven(candidate):
            return None
        attempt = self._try_of(candidate)
        try:
            held = await self._settle(attempt)
        except (ConflictError, NotFoundError):
            self.counts.conflicts += 1
            return None
        except (InvalidError, TooLargeError, ForbiddenError) as error:
            if isinstance(error, ForbiddenError) and not is_by_policy(error):
                raise
            self._note_refusal(candidate, error)
            return None
        self.counts.won += 1
        held.queue_grace = self._queue.cancel_grace
        return held

    def _check_lease(self, candidate: Candidate) -> None:
        lease, shortest = (
            self._policy(candidate).lease_duration_seconds,
            self._lateness.shortest_lease,
        )
        if lease < shortest:
            self.counts.postponed += 1
            raise HeartbeatsLateError(
                f"heartbeats are {self._lateness.seconds:.1f} s late: no lease below "
                f"{shortest:.0f} s can be kept, and {candidate.name} has one of {lease} s"
            )

    async def _settle(self, attempt: _Try) -> HeldJob:
        """Send until answered. A claim that may have taken effect must not be left to its lease."""
        backoff = Backoff(initial=0.1, cap=5.0)
        while True:
            sent_at = lease_seconds()
            try:
                answer = await self._session.merge_patch(attempt.path, attempt.body)
            except ApiError as error:
                ours = await self._after_error(attempt, error)
            else:
                return HeldJob.from_answer(answer, sent_at)
            if ours is not None:
                return HeldJob.from_answer(ours, attempt.first_sent_at)
            await self._pause(backoff.pause())

    async def _after_error(self, attempt: _Try, error: ApiError) -> JsonObject | None:
        """Return the job if it is ours all the same, None to send again; else raise the error.

        Whatever the answer says of a repetition, the first sending may have taken effect.
        """
        ours = None
        if isinstance(error, UnknownOutcomeError):
            attempt.doubtful = True
        elif not attempt.doubtful:
            raise error
        else:
            ours = await self._find(attempt, error)
        if ours is None and lease_seconds() > attempt.give_up_at:
            raise error
        return ours

    async def _find(self, attempt: _Try, error: ApiError) -> JsonObject | None:
        """Return the job if our claim has taken effect; None if nobody says whether it has.

        Raises the error that led here if it has not, NotFoundError if there is no such job.
        """
        namespace = self._session.access.namespace
        try:
            job = await self._session.get(job_path(namespace, attempt.candidate.name))
        except NotFoundError:
            raise
        except ApiError:
            return None
        status = child(job, "status")
        if text(status, "claim") != attempt.token or text(status, "phase") != Phase.RUNNING:
            raise error
        return job

    def _try_of(self, candidate: Candidate) -> _Try:
        token, now = secrets.token_hex(8), lease_seconds()
        policy = self._policy(candidate)
        return _Try(
            candidate,
            token,
            job_status_path(self._session.access.namespace, candidate.name),
            claim_body(candidate, self._holder, policy, claim=token, now=now_text()),
            first_sent_at=now,
            give_up_at=now + policy.lease_duration_seconds,
        )

    def _policy(self, candidate: Candidate) -> EffectivePolicy:
        handler = self._app.handlers[candidate.type]
        return resolve(candidate.policy, self._queue.defaults, handler.policy)

    def _note_refusal(self, candidate: Candidate, error: ApiError) -> None:
        self.counts.refused += 1
        log.warning("claim refused", job=candidate.name, error=str(error))


def cannot_claim(error: ApiError | HeartbeatsLateError) -> str:
    """Return what to do about an error that stops all claims."""
    if isinstance(error, ForbiddenError):
        return f"this identity may not claim jobs, check the worker's RBAC and pod: {error}"
    return str(error)
