"""Opens the way to the API server itself, for what a gateway does not have."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import click

from asyncjob.cli.connect import PATIENCE
from asyncjob.cli.place import Place
from asyncjob.client import driving
from asyncjob.client.errors import InvalidRequestError, NotFoundError
from asyncjob.client.on_kubernetes.calls import translated
from asyncjob.client.on_kubernetes.portal import Portal, PortalWorld
from asyncjob.client.on_kubernetes.world import KubeWorld
from asyncjob.client.steps import Emissions, Steps, T
from asyncjob.errors import ApiError
from asyncjob.kube import KubeSession, load_access

FIELD_MANAGER = "asyncjob-cli"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Runs operations on a cluster; `namespace` is the one that kubectl would take."""

    namespace: str
    new_world: Callable[[], driving.World]
    patience: float = PATIENCE

    def run(self, steps: Steps[T]) -> T:
        """Run one; the API server's errors come in the words of a client."""
        with _in_words():
            return driving.run(steps, self.new_world())

    def iterate(self, emissions: Emissions[T]) -> Iterator[T]:
        """Run one and yield what it hands out; errors likewise."""
        with _in_words():
            yield from driving.iterate(emissions, self.new_world())


@contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except ApiError as error:
        raise translated(error, NotFoundError, InvalidRequestError) from error


@contextmanager
def straight(place: Place) -> Iterator[Cluster]:
    """Open the way; raises UsageError for a gateway, NoClusterError where there is no cluster."""
    if place.server:
        raise click.UsageError(
            "this goes straight to the cluster: leave --server out (--server '')"
        )
    portal = Portal()
    try:
        session = portal.run(_session(place))
    except BaseException:
        portal.close()
        raise
    try:
        yield Cluster(session.access.namespace, lambda: PortalWorld(portal, KubeWorld(session)))
    finally:
        portal.close(session.close)


async def _session(place: Place) -> KubeSession:
    access = await load_access(place.kubeconfig, place.namespace, place.context)
    return KubeSession(access, field_manager=FIELD_MANAGER)
