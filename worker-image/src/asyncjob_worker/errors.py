"""The worker's own errors."""

from asyncjob.errors import AsyncJobError


class WorkerError(AsyncJobError):
    """The worker cannot go on."""


class CannotStartError(WorkerError):
    """The worker is not allowed, or not where it could, do its work."""


class PolicyMissingError(WorkerError):
    """The API server does not enforce that only the lease holder may write."""


class HeartbeatLagError(WorkerError):
    """The heartbeat thread gets to run too late to keep a lease this short."""

    retryable = True
