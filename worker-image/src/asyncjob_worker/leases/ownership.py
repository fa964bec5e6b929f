"""Ownership of jobs: whether the API server enforces it, and whether a job is still ours.

The first is checked before the first claim, by a dry run of a claim in the name of another pod,
which has to be refused. The second is checked by reading the job; a failed write alone never proves
that a job is lost.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import structlog

from asyncjob.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    ObjectNotFoundError,
    UnauthorizedError,
)
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.claim import Candidate, LeaseHolder, claim_patch
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.policy import resolve_policy
from asyncjob.names import GROUP, job_path, job_status_path
from asyncjob_worker.clock import boottime, now_text
from asyncjob_worker.errors import PolicyMissingError
from asyncjob_worker.leases.held_job import HeldJob

log = structlog.get_logger()

MAX_CHECKS = 15
"""Number of checks, one a second: the API server takes some seconds to enforce a new policy."""

UNAUTHORIZED_SECONDS: Final = 10.0
"""How long the token has to be refused until that proves that the job is lost. Shorter refusals
prove nothing, and the lease protects the job anyway."""

OWNERSHIP_POLICY_NAME = f"ownership.{GROUP}"
"""The policy that has to refuse. A refusal by another one proves nothing: it may be due to the
job."""

_FOREIGN_HOLDER = LeaseHolder(
    "asyncjob-policy-check", "00000000-0000-0000-0000-000000000000", "policy-check"
)


class EnforcementCheck:
    """Checks whether this API server enforces ownership, until it is proven once."""

    def __init__(
        self,
        session: KubeSession,
        *,
        required: bool,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._session = session
        self._proven = not required
        self._check_lock = asyncio.Lock()
        self._pause = pause
        self.unproven = False

    async def is_proven(self, candidate: Candidate) -> bool:
        """Return True if it is enforced, False if this job's dry run proves nothing.

        Raises PolicyMissingError where it is not enforced, and ApiError if the check fails.
        """
        if self._is_known():
            return True
        async with self._check_lock:
            # Another slot may have proven it while this one waited.
            return self._is_known() or await self._prove(candidate)

    def _is_known(self) -> bool:
        # A method, because type checkers take an attribute to be unchanged across an await.
        return self._proven

    async def _prove(self, candidate: Candidate) -> bool:
        for tries_left in reversed(range(MAX_CHECKS)):
            refused = await self._try_foreign_claim(candidate)
            self.unproven = refused is False
            if not self.unproven:
                self._proven = refused is True
                return self._proven
            if tries_left:
                log.warning("ownership is not enforced yet", tries_left=tries_left)
                await self._pause(1.0)
        raise PolicyMissingError(
            "the API server let a claim in another pod's name pass: apply the policies "
            "(kubectl apply -f crds/), or run with --allow-unenforced"
        )

    async def _try_foreign_claim(self, candidate: Candidate) -> bool | None:
        """Return whether a foreign claim is refused by the policy; None if it fails otherwise."""
        path = job_status_path(self._session.access.namespace, candidate.name)
        policy = resolve_policy(candidate.policy)
        body = claim_patch(candidate, _FOREIGN_HOLDER, policy, claim_id="check", now=now_text())
        try:
            await self._session.merge_patch(path, body, {"dryRun": "All"})
        except (ConflictError, ObjectNotFoundError):
            return None
        except (ForbiddenError, InvalidError) as error:
            if OWNERSHIP_POLICY_NAME in str(error):
                return True
            if isinstance(error, ForbiddenError) and not is_policy_refusal(error):
                raise
            return None
        return False


def is_policy_refusal(error: Exception) -> bool:
    """Return whether an admission policy, not RBAC or the schema, has refused the request."""
    return "ValidatingAdmissionPolicy" in str(error)


class Ownership(StrEnum):
    """The state of our claim on a job."""

    HELD = "held"
    """The job is running, and ours."""

    LEFT = "left"
    """The claim is still ours, but the job has left Running: by our outcome or by another write."""

    FENCED = "fenced"
    """The job is gone, or somebody else's."""

    UNKNOWN = "unknown"
    """The job could not be read."""


@dataclass(frozen=True, slots=True)
class OwnershipCheck:
    """What reading a job has shown."""

    ownership: Ownership
    status: JsonObject = field(default_factory=dict)
    """The status that was read; empty where there was none."""


async def check_ownership(session: KubeSession, held: HeldJob) -> OwnershipCheck:
    """Read the job and return whether it is still ours.

    A token that is refused for UNAUTHORIZED_SECONDS, although it is read again, counts as fenced:
    our pod is gone. Before that the API server's keys may just be changing.
    """
    try:
        job = await session.get(job_path(held.job.namespace, held.job.name))
    except ObjectNotFoundError:
        return OwnershipCheck(Ownership.FENCED)
    except UnauthorizedError:
        return _unauthorized(held, boottime())
    except ApiError:
        return OwnershipCheck(Ownership.UNKNOWN)
    held.unauthorized_since = None
    status = child(job, "status")
    if text(child(job, "metadata"), "uid") != held.job.uid or text(status, "claim") != held.claim:
        return OwnershipCheck(Ownership.FENCED, status)
    running = text(status, "phase") == Phase.RUNNING
    return OwnershipCheck(Ownership.HELD if running else Ownership.LEFT, status)


def _unauthorized(held: HeldJob, now: float) -> OwnershipCheck:
    if held.unauthorized_since is None:
        held.unauthorized_since = now
    lasts = now - held.unauthorized_since >= UNAUTHORIZED_SECONDS
    return OwnershipCheck(Ownership.FENCED if lasts else Ownership.UNKNOWN)
