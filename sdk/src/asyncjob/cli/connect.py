"""Opens the way to the jobs. The clients are slow to import, hence not before they are needed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from asyncjob.cli.place import Place

if TYPE_CHECKING:
    from asyncjob.client.interface import Jobs


@contextmanager
def connect(place: Place) -> "Iterator[Jobs]":
    """Open the client that the place asks for; raises NoClusterError where there is none."""
    if place.server:
        from asyncjob.client import JobsClient

        with JobsClient(place.server, token=place.token, namespace=place.namespace) as gateway:
            yield gateway
    else:
        from asyncjob.client import KubernetesJobsClient

        with KubernetesJobsClient.connect(
            kubeconfig=place.kubeconfig, namespace=place.namespace, context=place.context
        ) as cluster:
            yield cluster
