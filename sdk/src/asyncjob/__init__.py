"""Durable asynchronous jobs on Kubernetes: models, rules, handlers, clients."""

from asyncjob.app import Category, Fail, JobContext, Retry, WorkerApp
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
    "Category",
    "Fail",
    "JobContext",
    "Retry",
    "RetryPolicy",
    "WorkerApp",
    "__version__",
]
