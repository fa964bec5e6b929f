"""Clients: submit jobs and follow what happens to them, by REST or directly on Kubernetes.

Each way has an async client; the synchronous one runs it where it is called, over a connection that
blocks, or waits for it in a thread. A client class is imported when it is first used, because the
other way's dependencies are slow to load.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from asyncjob.client.api import AsyncJobs, Jobs
    from asyncjob.client.kubernetes.client import AsyncKubernetesJobsClient, KubernetesJobsClient
    from asyncjob.client.rest.client import AsyncJobsClient, JobsClient

__all__ = [
    "AsyncJobs",
    "AsyncJobsClient",
    "AsyncKubernetesJobsClient",
    "Jobs",
    "JobsClient",
    "KubernetesJobsClient",
]

_MODULES: Final = {
    "AsyncJobs": "api",
    "AsyncJobsClient": "rest.client",
    "AsyncKubernetesJobsClient": "kubernetes.client",
    "Jobs": "api",
    "JobsClient": "rest.client",
    "KubernetesJobsClient": "kubernetes.client",
}


if not TYPE_CHECKING:  # else a type checker would let any name pass

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
