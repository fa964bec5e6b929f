"""Whether a job is still ours: what a fresh read says. No error of a write alone ever does."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from asyncjob.errors import ApiError, ObjectNotFoundError, UnauthorizedError
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import job_path
from asyncjob_worker.clock import lease_seconds
from asyncjob_worker.held import HeldJob

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
