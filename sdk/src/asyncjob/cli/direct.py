"""Direct access to the API server for what a gateway does not offer.

Export, restore and listing all namespaces.
"""

from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from asyncjob.cli.connection import RETRY_SECONDS, ConnectionOptions
from asyncjob.client.kubernetes.calls import KubernetesCalls, translate_errors
from asyncjob.client.kubernetes.connection import KubeConnection
from asyncjob.client.portal import Portal
from asyncjob.kube import KubeSession, load_access

T = TypeVar("T")

FIELD_MANAGER = "asyncjob-cli"


@dataclass(frozen=True, slots=True)
class DirectCluster:
    """A cluster, and the thread that asks it; `namespace` is the one that kubectl would take."""

    namespace: str
    api: KubernetesCalls
    portal: Portal

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what it returns; the API server's errors come in the words of a client."""
        with translate_errors():
            return self.portal.run(work)

    def iterate(self, values: AsyncGenerator[T]) -> Iterator[T]:
        """Yield what it yields; errors likewise."""
        with translate_errors():
            yield from self.portal.iterate(values)


@contextmanager
def open_cluster(connection: ConnectionOptions) -> Iterator[DirectCluster]:
    """Open the way; raises UsageError for a gateway, NoClusterError where there is no cluster."""
    if connection.server:
        raise click.UsageError(
            "this goes straight to the cluster: leave --server out (--server '')"
        )
    portal = Portal()
    try:
        session = portal.run(_open_session(connection))
    except BaseException:
        portal.close()
        raise
    try:
        api = KubernetesCalls(KubeConnection(session), patience=RETRY_SECONDS)
        yield DirectCluster(session.access.namespace, api, portal)
    finally:
        portal.close(session.close)


async def _open_session(connection: ConnectionOptions) -> KubeSession:
    access = await load_access(connection.kubeconfig, connection.namespace, connection.context)
    return KubeSession(access, field_manager=FIELD_MANAGER)
