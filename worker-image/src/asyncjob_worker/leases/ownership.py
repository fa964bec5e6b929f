"""Ownership of jobs: does the API server enforce it, and is a job still ours.

The first is checked before the first claim, by a dry run of a claim in the name of a pod that is
not ours, which has to be refused. The second is a fresh read; an error of a write alone never
proves that a job is lost.
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
from asyncjob_worker.clock import lease_seconds, now_text
from asyncjob_worker.errors import PolicyMissingError
from asyncjob_worker.leases.held_job import HeldJob

log = structlog.get_logger()

MAX_CHECKS = 15
"""A policy just applied takes the API server some seconds to enforce; one try a second."""

OWNERSHIP_POLICY = f"ownership.{GROUP}"
"""Another policy's refusal proves nothing: it may be the job that does not fit."""

_FOREIGN_HOLDER = LeaseHolder(
    "asyncjob-policy-check", "00000000-0000-0000-0000-000000000000", "policy-check"
)


class EnforcementCheck:
    """Whether this API server enforces ownership; asked until it is proven once."""

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
        """Return whether it is enforced; False if the job at hand cannot tell.

        Raises PolicyMissingError where it is not, and ApiError where nothing can be asked.
        """
        if self._is_known():
            return True
        async with self._check_lock:
            # Another slot may have proven it while this one waited.
            return self._is_known() or await self._prove(candidate)

    def _is_known(self) -> bool:
        return self._proven

    async def _prove(self, candidate: Candidate) -> bool:
        for tries_left in reversed(range(MAX_CHECKS)):
            known = await self._try_foreign_claim(candidate)
            self.unproven = known is False
            if not self.unproven:
                self._proven = known is True
                return self._proven
            if tries_left:
                log.warning("ownership is not enforced yet", tries_left=tries_left)
                await self._pause(1.0)
        raise PolicyMissingError(
            "the API server let a claim in another pod's name pass: apply the policies "
            "(kubectl apply -f crds/), or run with --allow-unenforced"
        )

    async def _try_foreign_claim(self, candidate: Candidate) -> bool | None:
        """Return whether a foreign claim is refused by policy; None if it fails otherwise."""
        path = job_status_path(self._session.access.namespace, candidate.name)
        policy = resolve_policy(candidate.policy)
        body = claim_patch(candidate, _FOREIGN_HOLDER, policy, claim="check", now=now_text())
        try:
            await self._session.merge_patch(path, body, {"dryRun": "All"})
        except (ConflictError, ObjectNotFoundError):
            return None
        except (ForbiddenError, InvalidError) as error:
            if OWNERSHIP_POLICY in str(error):
                return True
            if isinstance(error, ForbiddenError) and not is_policy_refusal(error):
                raise
            return None
        return False


def is_policy_refusal(error: Exception) -> bool:
    """Return whether an admission policy, not RBAC or the schema, has refused."""
    return "ValidatingAdmissionPolicy" in str(error)


UNAUTHORIZED_SECONDS: Final = 10.0
"""A refusal of the token that lasts no longer proves nothing; the lease protects the job anyway."""


class Ownership(StrEnum):
    """What a fresh read says of our claim on a job."""

    HELD = "held"
    LEFT = "left"
    FENCED = "fenced"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class OwnershipCheck:
    """A fresh read. LEFT: it has left Running by our claim, or somebody moved it since."""

    ownership: Ownership
    status: JsonObject = field(default_factory=dict)


async def check_ownership(session: KubeSession, held: HeldJob) -> OwnershipCheck:
    """Read the job: still ours, no longer running, somebody else's or gone, or no answer.

    A token that is refused, even after it was read again, for REFUSED_SECONDS counts as fenced: our
    pod is gone. Before, it may be that the API server's keys are being changed.
    """
    try:
        job = await session.get(job_path(held.job.namespace, held.job.name))
    except ObjectNotFoundError:
        return OwnershipCheck(Ownership.FENCED)
    except UnauthorizedError:
        return _unauthorized(held, lease_seconds())
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
