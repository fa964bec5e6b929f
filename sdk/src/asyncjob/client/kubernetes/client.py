"""`KubernetesJobsClient` and its async twin: jobs directly on Kubernetes, without a gateway."""

import uuid
from datetime import UTC, datetime
from typing import Self

from asyncjob.client.async_shell import AsyncShell
from asyncjob.client.kubernetes.operations import DEFAULT_PATIENCE_SECONDS, KubernetesOperations
from asyncjob.client.kubernetes.portal import Portal, PortalWorld
from asyncjob.client.kubernetes.world import KubeWorld
from asyncjob.client.results import ResultStore
from asyncjob.client.shell import Shell
from asyncjob.kube import KubeSession, load_access

FIELD_MANAGER = "asyncjob-client"


class KubernetesJobsClient(Shell):
    """Jobs straight on Kubernetes, for plain code; the methods are those of `Jobs`.

    It needs of RBAC what the methods do that are called, and no event loop of its user's.
    """

    @classmethod
    def connect(
        cls,
        kubeconfig: str | None = None,
        namespace: str | None = None,
        *,
        context: str | None = None,
        patience: float = DEFAULT_PATIENCE_SECONDS,
        store: ResultStore | None = None,
    ) -> Self:
        """Return a client of one namespace.

        Without a kubeconfig it goes by KUBECONFIG, else by the pod it runs in, else by
        ~/.kube/config; without a namespace by what that says. `context` is one of the kubeconfig,
        if not its current one. `patience` is how many seconds an API
        server that is away is waited for. Raises NoClusterError.
        """
        portal = Portal()
        try:
            session = portal.run(_open_session(kubeconfig, namespace, context))
        except BaseException:
            portal.close()
            raise
        operations = _operations(session, patience, store)

        def close() -> None:
            portal.close(session.close)

        return cls(operations, lambda: PortalWorld(portal, KubeWorld(session)), close)


class AsyncKubernetesJobsClient(AsyncShell):
    """Jobs straight on Kubernetes, for an event loop; the methods are those of `AsyncJobs`."""

    @classmethod
    async def connect(
        cls,
        kubeconfig: str | None = None,
        namespace: str | None = None,
        *,
        context: str | None = None,
        patience: float = DEFAULT_PATIENCE_SECONDS,
        store: ResultStore | None = None,
    ) -> Self:
        """Return a client of one namespace; see `KubernetesJobsClient.connect`."""
        session = await _open_session(kubeconfig, namespace, context)
        operations = _operations(session, patience, store)
        return cls(operations, lambda: KubeWorld(session), session.close)


async def _open_session(
    kubeconfig: str | None, namespace: str | None, context: str | None
) -> KubeSession:
    access = await load_access(kubeconfig, namespace, context)
    return KubeSession(access, field_manager=FIELD_MANAGER)


def _operations(
    session: KubeSession, patience: float, store: ResultStore | None
) -> KubernetesOperations:
    return KubernetesOperations(session.access.namespace, _now, _new_id, patience, store)


def _now() -> datetime:
    return datetime.now(UTC)


def _new_id() -> str:
    return str(uuid.uuid4())
