"""Durable asynchronous jobs on Kubernetes: models, rules, handlers, clients.

What is exported here is imported when it is first used: a command line that only prints its help
must not wait for models and clients.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from asyncjob.app import (
        CallNext,
        Category,
        Child,
        Event,
        Fail,
        ItemContext,
        JobContext,
        JobEnded,
        JobEvent,
        Retry,
        SignalInvalid,
        SignalTimeout,
        StepError,
        StepRefusedError,
        WorkerApp,
        WorkerEvent,
    )
    from asyncjob.client import (
        AsyncJobs,
        AsyncJobsClient,
        AsyncKubernetesJobsClient,
        Jobs,
        JobsClient,
        KubernetesJobsClient,
    )
    from asyncjob.models import (
        AsyncArray,
        AsyncCronJob,
        AsyncJob,
        AsyncJobSpec,
        AsyncJobStatus,
        AsyncQueue,
        RetryPolicy,
    )
    from asyncjob.rest.arrays import ArraySelection, ArraySubmission
    from asyncjob.rest.listing import Selection
    from asyncjob.rest.submission import Submission

__version__ = "0.1.0"

_APP: Final = "asyncjob.app"
_CLIENT: Final = "asyncjob.client"
_MODELS: Final = "asyncjob.models"
_MODULES: Final = {
    "ArraySelection": "asyncjob.rest.arrays",
    "ArraySubmission": "asyncjob.rest.arrays",
    "AsyncArray": _MODELS,
    "AsyncCronJob": _MODELS,
    "AsyncJob": _MODELS,
    "AsyncJobSpec": _MODELS,
    "AsyncJobStatus": _MODELS,
    "AsyncJobs": _CLIENT,
    "AsyncJobsClient": _CLIENT,
    "AsyncKubernetesJobsClient": _CLIENT,
    "AsyncQueue": _MODELS,
    "CallNext": _APP,
    "Category": _APP,
    "Child": _APP,
    "Event": _APP,
    "Fail": _APP,
    "ItemContext": _APP,
    "JobContext": _APP,
    "JobEnded": _APP,
    "JobEvent": _APP,
    "Jobs": _CLIENT,
    "JobsClient": _CLIENT,
    "KubernetesJobsClient": _CLIENT,
    "Retry": _APP,
    "RetryPolicy": _MODELS,
    "Selection": "asyncjob.rest.listing",
    "SignalInvalid": _APP,
    "SignalTimeout": _APP,
    "StepError": _APP,
    "StepRefusedError": _APP,
    "Submission": "asyncjob.rest.submission",
    "WorkerApp": _APP,
    "WorkerEvent": _APP,
}

__all__ = [
    "ArraySelection",
    "ArraySubmission",
    "AsyncArray",
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
    "ItemContext",
    "JobContext",
    "JobEnded",
    "JobEvent",
    "Jobs",
    "JobsClient",
    "KubernetesJobsClient",
    "Retry",
    "RetryPolicy",
    "Selection",
    "SignalInvalid",
    "SignalTimeout",
    "StepError",
    "StepRefusedError",
    "Submission",
    "WorkerApp",
    "WorkerEvent",
    "__version__",
]


if not TYPE_CHECKING:  # else a type checker would let any name pass

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value: object = getattr(import_module(_MODULES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
