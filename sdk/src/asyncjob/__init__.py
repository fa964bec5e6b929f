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

_APP: Final = "asyncjob.app"
_MODELS: Final = "asyncjob.models"
_HOMES: Final = {
    "AsyncCronJob": _MODELS,
    "AsyncJob": _MODELS,
    "AsyncJobSpec": _MODELS,
    "AsyncJobStatus": _MODELS,
    "AsyncQueue": _MODELS,
    "CallNext": _APP,
    "Category": _APP,
    "Child": _APP,
    "Event": _APP,
    "Fail": _APP,
    "JobContext": _APP,
    "JobEnded": _APP,
    "JobEvent": _APP,
    "Retry": _APP,
    "RetryPolicy": _MODELS,
    "WorkerApp": _APP,
    "WorkerEvent": _APP,
}

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


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
