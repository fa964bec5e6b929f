"""The worker's own errors."""

from asyncjob.errors import AsyncJobError, ConfigError


class WorkerError(AsyncJobError):
    """The worker cannot go on."""

    code = "worker-failed"


class CannotStartError(WorkerError):
    """The worker is not allowed, or not where it could, do its work."""

    code = "worker-not-allowed"


class PolicyMissingError(WorkerError):
    """The API server does not enforce that only the lease holder may write."""

    code = "policy-missing"


class HeartbeatLagError(WorkerError):
    """The heartbeat thread gets to run too late to keep a lease this short."""

    code = "heartbeat-late"

    retryable = True


class AppNotLoadedError(ConfigError):
    """The app cannot be imported, or is not one."""

    code = "app-not-loaded"


class NoPodError(ConfigError):
    """The worker does not know which pod it is."""

    code = "no-pod"
