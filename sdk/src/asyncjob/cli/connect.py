"""Opens the way to the jobs. The clients are slow to import, hence not before they are needed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from asyncjob.cli.place import Place

if TYPE_CHECKING:
    from asyncjob.client.interface import Jobs


PATIENCE: Final = 8.0
"""Seconds for which a server that is away is tried again: a person sits there."""


@contextmanager
def connect(place: Place) -> "Iterator[Jobs]":
    """Open the client that the place asks for; raises NoClusterError where there is none."""
    if place.server:
        from asyncjob.client import JobsClient

        with JobsClient(
            place.server, token=place.token, namespace=place.namespace, patience=PATIENCE
        ) as gateway:
            yield gateway
    else:
        from asyncjob.client import KubernetesJobsClient

        with KubernetesJobsClient.connect(
            kubeconfig=place.kubeconfig,
            namespace=place.namespace,
            context=place.context,
            patience=PATIENCE,
        ) as cluster:
            yield cluster
