"""Proves, before the first claim, that the API server enforces ownership.

A dry run of a claim in the name of a pod that is not ours has to be refused.
"""

from asyncjob.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.claim import Candidate, Holder, claim_body
from asyncjob.lifecycle.policy import resolve
from asyncjob.names import job_status_path
from asyncjob_worker.clock import now_text
from asyncjob_worker.errors import PolicyMissingError

_NOBODY = Holder("asyncjob-policy-check", "00000000-0000-0000-0000-000000000000", "policy-check")


async def is_enforced(session: KubeSession, candidate: Candidate) -> bool | None:
    """Return whether a foreign claim on the job is refused; None if the job is gone meanwhile.

    Raises PolicyMissingError where it would be let through.
    """
    path = job_status_path(session.access.namespace, candidate.name)
    body = claim_body(candidate, _NOBODY, resolve(candidate.policy), claim="check", now=now_text())
    try:
        await session.merge_patch(path, body, {"dryRun": "All"})
    except (ConflictError, NotFoundError):
        return None
    except (ForbiddenError, InvalidError) as error:
        return _by_policy(str(error))
    raise PolicyMissingError(
        "the API server let a claim in another pod's name pass: apply the policies "
        "(kubectl apply -f crds/), or run with --allow-unenforced"
    )


def _by_policy(message: str) -> bool | None:
    return True if "ValidatingAdmissionPolicy" in message else None
