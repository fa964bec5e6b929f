"""Clients: submit jobs and see what becomes of them, by REST or straight on Kubernetes.

One core of operations, which neither send nor sleep; plain and async shells around it. A client is
imported when it is first asked for: what the other way takes is slow to load.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from asyncjob.client.by_rest.client import AsyncJobsClient, JobsClient
    from asyncjob.client.interface import AsyncJobs, Jobs
    from asyncjob.client.on_kubernetes.client import (
        AsyncKubernetesJobsClient,
        KubernetesJobsClient,
    )

__all__ = [
    "AsyncJobs",
    "AsyncJobsClient",
    "AsyncKubernetesJobsClient",
    "Jobs",
    "JobsClient",
    "KubernetesJobsClient",
]

_MODULES: Final = {
    "AsyncJobs": "interface",
    "AsyncJobsClient": "by_rest.client",
    "AsyncKubernetesJobsClient": "on_kubernetes.client",
    "Jobs": "interface",
    "JobsClient": "by_rest.client",
    "KubernetesJobsClient": "on_kubernetes.client",
}


if not TYPE_CHECKING:  # else a type checker would let any name pass

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
