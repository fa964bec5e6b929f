"""Direct access to the API server for what a gateway does not offer.

Export, restore and listing all namespaces.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import click

from asyncjob.cli.connection import RETRY_SECONDS, ConnectionOptions
from asyncjob.client import driving
from asyncjob.client.errors import InvalidRequestError, NotFoundError
from asyncjob.client.kubernetes.calls import to_client_error
from asyncjob.client.kubernetes.portal import Portal, PortalWorld
from asyncjob.client.kubernetes.world import KubeWorld
from asyncjob.client.steps import Emissions, Steps, T
from asyncjob.errors import ApiError
from asyncjob.kube import KubeSession, load_access

FIELD_MANAGER = "asyncjob-cli"


@dataclass(frozen=True, slots=True)
class DirectCluster:
    """Runs operations on a cluster; `namespace` is the one that kubectl would take."""

    namespace: str
    new_world: Callable[[], driving.World]
    retry_seconds: float = RETRY_SECONDS

    def run(self, steps: Steps[T]) -> T:
        """Run one; the API server's errors come in the words of a client."""
        with _translate_errors():
            return driving.run(steps, self.new_world())

    def iterate(self, emissions: Emissions[T]) -> Iterator[T]:
        """Run one and yield what it hands out; errors likewise."""
        with _translate_errors():
            yield from driving.iterate(emissions, self.new_world())


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except ApiError as error:
        raise to_client_error(error, NotFoundError, InvalidRequestError) from error


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
        yield DirectCluster(
            session.access.namespace, lambda: PortalWorld(portal, KubeWorld(session))
        )
    finally:
        portal.close(session.close)


async def _open_session(connection: ConnectionOptions) -> KubeSession:
    access = await load_access(connection.kubeconfig, connection.namespace, connection.context)
    return KubeSession(access, field_manager=FIELD_MANAGER)
