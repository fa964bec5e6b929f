"""Durable asynchronous jobs on Kubernetes: models, rules, handlers, clients."""

from asyncjob.app import (
    CallNext,
    Category,
    Child,
    Event,
    Fail,
    JobContext,
    JobEnded,
    JobEvent,
    Retry,
    WorkerApp,
    WorkerEvent,
)
from asyncjob.models import (
    AsyncCronJob,
    AsyncJob,
    AsyncJobSpec,
    AsyncJobStatus,
    AsyncQueue,
    RetryPolicy,
)

__version__ = "0.1.0"

__all__ = [
    "AsyncCronJob",
    "AsyncJob",
    "AsyncJobSpec",
    "AsyncJobStatus",
    "AsyncQueue",
    "CallNext",
    "Category",
    "Child",
    "Event",
    "Fail",
    "JobContext",
    "JobEnded",
    "JobEvent",
    "Retry",
    "RetryPolicy",
    "WorkerApp",
    "WorkerEvent",
    "__version__",
]
