"""Claims jobs with one conditional write each.

Of several workers that try to claim a job, one succeeds; the others get a conflict and have done no
work.
"""

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
    ObjectNotFoundError,
    TooLargeError,
    UnknownOutcomeError,
)
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.kube.pacing import ExponentialBackoff
from asyncjob.lifecycle.claim import Candidate, LeaseHolder, claim_patch
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.policy import EffectivePolicy, resolve_policy
from asyncjob.names import job_path, job_status_path
from asyncjob_worker.claiming.queue_state import QueueState
from asyncjob_worker.clock import boottime, now_text
from asyncjob_worker.errors import HeartbeatLagError
from asyncjob_worker.leases.heartbeat_lag import HeartbeatLag
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.ownership import EnforcementCheck, is_policy_refusal

log = structlog.get_logger()


@dataclass(slots=True)
class ClaimCounts:
    """Counts of the claims so far, by how they ended."""

    won: int = 0
    conflicts: int = 0
    refused: int = 0
    """Refused by the API server's schema, rules or admission policies."""

    postponed: int = 0
    """Not sent, because the heartbeats are too late to keep the lease."""


@dataclass(slots=True)
class _ClaimRequest:
    """One claim, sent until it is answered; with the same body each time, so it takes effect once.

    `first_sent_at`, `deadline` and `sent_at` (the last time) are seconds of the lease clock.
    """

    candidate: Candidate
    claim_id: str
    path: str
    body: JsonObject
    first_sent_at: float
    deadline: float
    sent_at: float
    outcome_unknown: bool = False

    def on_send(self) -> None:
        """Note that it is sent, once more if the API server has throttled it."""
        self.sent_at = boottime()


class Claimer:
    """Claims jobs for one worker process."""

    def __init__(
        self,
        session: KubeSession,
        app: WorkerApp,
        queue: QueueState,
        holder: LeaseHolder,
        enforcement: EnforcementCheck,
        *,
        lag: HeartbeatLag,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._session = session
        self._app = app
        self._queue = queue
        self._holder = holder
        self._enforcement = enforcement
        self._lag = lag
        self._pause = pause
        self.counts = ClaimCounts()

    async def claim(self, candidate: Candidate) -> HeldJob | None:
        """Return the job if it is claimed, None if another worker has it or the claim is refused.

        Raises ApiError where no claim can succeed (no permission, or the API server is away),
        HeartbeatLagError where this process could not keep the lease, and PolicyMissingError
        before the first claim where ownership is not enforced.
        """
        self._check_lease(candidate)
        if not await self._enforcement.is_proven(candidate):
            return None
        request = self._build_request(candidate)
        try:
            held = await self._send(request)
        except (ConflictError, ObjectNotFoundError):
            self.counts.conflicts += 1
            return None
        except (InvalidError, TooLargeError, ForbiddenError) as error:
            if isinstance(error, ForbiddenError) and not is_policy_refusal(error):
                raise
            self._record_refusal(candidate, error)
            return None
        self.counts.won += 1
        held.queue_cancel_grace = self._queue.cancel_grace
        return held

    def _check_lease(self, candidate: Candidate) -> None:
        lease = self._policy(candidate).lease_duration_seconds
        shortest = self._lag.shortest_lease
        if lease < shortest:
            self.counts.postponed += 1
            raise HeartbeatLagError(
                f"heartbeats are {self._lag.seconds:.1f} s late: no lease below "
                f"{shortest:.0f} s can be kept, and {candidate.name} has one of {lease} s"
            )

    async def _send(self, request: _ClaimRequest) -> HeldJob:
        """Send the claim until it is answered.

        A claim that may have taken effect is not given up: its job would wait for the lease to
        expire.
        """
        backoff = ExponentialBackoff(initial=0.1, cap=5.0)
        while True:
            try:
                answer = await self._session.merge_patch(
                    request.path, request.body, on_send=request.on_send
                )
            except ApiError as error:
                claimed = await self._after_error(request, error)
            else:
                return HeldJob.from_response(answer, request.sent_at)
            if claimed is not None:
                return HeldJob.from_response(claimed, request.first_sent_at)
            await self._pause(backoff.next_delay())

    async def _after_error(self, request: _ClaimRequest, error: ApiError) -> JsonObject | None:
        """Return the job if it is ours in spite of the error, None to send again; else raise it.

        After an unknown outcome an error of a later sending, such as a conflict, proves nothing:
        the first sending may have taken effect.
        """
        claimed = None
        if isinstance(error, UnknownOutcomeError):
            request.outcome_unknown = True
        elif not request.outcome_unknown:
            raise error
        else:
            claimed = await self._find_claimed(request, error)
        if claimed is None and boottime() > request.deadline:
            raise error
        return claimed

    async def _find_claimed(self, request: _ClaimRequest, error: ApiError) -> JsonObject | None:
        """Return the job if our claim has taken effect; None if that cannot be read.

        Raises the error that led here if it has not, ObjectNotFoundError if the job is gone.
        """
        namespace = self._session.access.namespace
        try:
            job = await self._session.get(job_path(namespace, request.candidate.name))
        except ObjectNotFoundError:
            raise
        except ApiError:
            return None
        status = child(job, "status")
        if text(status, "claim") != request.claim_id or text(status, "phase") != Phase.RUNNING:
            raise error
        return job

    def _build_request(self, candidate: Candidate) -> _ClaimRequest:
        claim_id, now = secrets.token_hex(8), boottime()
        policy = self._policy(candidate)
        return _ClaimRequest(
            candidate,
            claim_id,
            job_status_path(self._session.access.namespace, candidate.name),
            claim_patch(candidate, self._holder, policy, claim_id=claim_id, now=now_text()),
            first_sent_at=now,
            deadline=now + policy.lease_duration_seconds,
            sent_at=now,
        )

    def _policy(self, candidate: Candidate) -> EffectivePolicy:
        handler = self._app.handlers[candidate.type]
        return resolve_policy(candidate.policy, self._queue.defaults, handler.policy)

    def _record_refusal(self, candidate: Candidate, error: ApiError) -> None:
        self.counts.refused += 1
        log.warning("claim refused", job=candidate.name, error=str(error))


def explain_claim_error(error: ApiError | HeartbeatLagError) -> str:
    """Return what to do about an error that stops all claims."""
    if isinstance(error, ForbiddenError):
        return f"this identity may not claim jobs, check the worker's RBAC and pod: {error}"
    return str(error)
