"""Durable asynchronous jobs on Kubernetes: models, rules, handlers, clients."""

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from asyncjob.client import (
        AsyncJobs,
        AsyncJobsClient,
        AsyncKubernetesJobsClient,
        Jobs,
        JobsClient,
        KubernetesJobsClient,
    )
    from asyncjob.rest.selection import Selection
    from asyncjob.rest.submission import Submission

__version__ = "0.1.0"

__all__ = [
    "AsyncCronJob",
    "AsyncJob",
    "AsyncJobSpec",
    "AsyncJobStatus",
    "AsyncJobs",
    "AsyncJobsClient",
    "AsyncKubernetesJobsClient",
    "AsyncQueue",
    "CallNext",
    "Category",
    "Child",
    "Event",
    "Fail",
    "JobContext",
    "JobEnded",
    "JobEvent",
    "Jobs",
    "JobsClient",
    "KubernetesJobsClient",
    "Retry",
    "RetryPolicy",
    "Selection",
    "Submission",
    "WorkerApp",
    "WorkerEvent",
    "__version__",
]


if not TYPE_CHECKING:  # else a type checker would let any name pass

    def __getattr__(name: str) -> object:
        """Import what only submitters need when it is first asked for: it is slow to load."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from asyncjob import client
        from asyncjob.rest import selection, submission

        places = (client, selection, submission)
        return next(getattr(place, name) for place in places if hasattr(place, name))
