"""Opens the way to the jobs. The clients are slow to import, hence not before they are needed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from asyncjob.cli.place import ConnectionOptions

if TYPE_CHECKING:
    from asyncjob.client.interface import Jobs


RETRY_SECONDS: Final = 8.0
"""Seconds for which a server that is away is tried again: a person sits there."""


@contextmanager
def connect(connection: ConnectionOptions) -> "Iterator[Jobs]":
    """Open the client that the place asks for; raises NoClusterError where there is none."""
    if connection.server:
        from asyncjob.client import JobsClient

        with JobsClient(
            connection.server,
            token=connection.token,
            namespace=connection.namespace,
            patience=RETRY_SECONDS,
        ) as gateway:
            yield gateway
    else:
        from asyncjob.client import KubernetesJobsClient

        with KubernetesJobsClient.connect(
            kubeconfig=connection.kubeconfig,
            namespace=connection.namespace,
            context=connection.context,
            patience=RETRY_SECONDS,
        ) as cluster:
            yield cluster
