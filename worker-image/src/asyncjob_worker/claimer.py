"""Claims jobs: one conditional write each; whoever loses does no work."""

import secrets
from dataclasses import dataclass

import structlog

from asyncjob.app import WorkerApp
from asyncjob.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnknownOutcomeError,
)
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.claim import Candidate, Holder, claim_body
from asyncjob.lifecycle.policy import resolve
from asyncjob.names import job_path, job_status_path
from asyncjob_worker.clock import lease_seconds, now_text
from asyncjob_worker.enforcement import is_enforced
from asyncjob_worker.held import HeldJob
from asyncjob_worker.queue_view import QueueView

log = structlog.get_logger()


@dataclass(slots=True)
class ClaimCounts:
    """What became of the claims so far."""

    won: int = 0
    conflicts: int = 0
    refused: int = 0


class Claimer:
    """Claims for one worker process."""

    def __init__(
        self,
        session: KubeSession,
        app: WorkerApp,
        queue: QueueView,
        holder: Holder,
        *,
        require_policy: bool,
    ) -> None:
        self._session = session
        self._app = app
        self._queue = queue
        self._holder = holder
        self._enforced = not require_policy
        self.counts = ClaimCounts()

    async def claim(self, candidate: Candidate) -> HeldJob | None:
        """Return the job if it is ours now, None if it is not.

        Raises ApiError where no claim can succeed: no permission, or the API server is away; and
        PolicyMissingError before the first claim, where ownership is not enforced.
        """
        if not self._enforced:
            self._enforced = await is_enforced(self._session, candidate) is True
        token = secrets.token_hex(8)
        sent_at = lease_seconds()
        path = job_status_path(self._session.access.namespace, candidate.name)
        try:
            answer = await self._session.merge_patch(path, self._body(candidate, token))
        except (ConflictError, NotFoundError):
            self.counts.conflicts += 1
            return None
        except InvalidError as error:
            self._note_refusal(candidate, error)
            return None
        except UnknownOutcomeError:
            answer = await self._find_out(candidate, token)
        return self._hold(answer, sent_at)

    def _hold(self, answer: JsonObject, sent_at: float) -> HeldJob | None:
        if not answer:
            return None
        self.counts.won += 1
        return HeldJob.from_answer(answer, sent_at)

    def _body(self, candidate: Candidate, token: str) -> JsonObject:
        handler = self._app.handlers[candidate.type]
        policy = resolve(candidate.policy, self._queue.defaults, handler.policy)
        return claim_body(candidate, self._holder, policy, claim=token, now=now_text())

    async def _find_out(self, candidate: Candidate, token: str) -> JsonObject:
        """Read whether a claim without an answer took effect."""
        path = job_path(self._session.access.namespace, candidate.name)
        try:
            job = await self._session.get(path)
        except NotFoundError:
            return {}
        return job if text(child(job, "status"), "claim") == token else {}

    def _note_refusal(self, candidate: Candidate, error: ApiError) -> None:
        self.counts.refused += 1
        log.info("claim refused", job=candidate.name, error=str(error))


def cannot_claim(error: ApiError) -> str:
    """Return what to do about an error that stops all claims."""
    if isinstance(error, ForbiddenError):
        return f"this identity may not claim jobs, check the worker's RBAC and pod: {error}"
    return str(error)
