"""Proves, before the first claim, that the API server enforces ownership.

A dry run of a claim in the name of a pod that is not ours has to be refused.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from asyncjob.errors import ConflictError, ForbiddenError, InvalidError, ObjectNotFoundError
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.claim import Candidate, LeaseHolder, claim_patch
from asyncjob.lifecycle.policy import resolve_policy
from asyncjob.names import GROUP, job_status_path
from asyncjob_worker.clock import now_text
from asyncjob_worker.errors import PolicyMissingError

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
