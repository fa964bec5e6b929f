"""Access to an API server in memory: what parts of the project take for a cluster's."""

import ssl
from collections.abc import Callable

from kubernetes.aio.client import Configuration

from asyncjob.kube import ClusterAccess
from asyncjob_simulation.apiserver.http import MemoryConnections


class MemoryAccess(ClusterAccess):
    """Signs with a token; `renew` returns the next one when that was refused, if there is any."""

    def __init__(
        self,
        connections: MemoryConnections,
        token: str,
        namespace: str = "default",
        *,
        renew: Callable[[], str] | None = None,
    ) -> None:
        super().__init__(
            kubeconfig=None,
            configuration=_configuration(token),
            namespace=namespace,
            ssl_context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            open_pool=connections.open_pool,
        )
        self._token = token
        self._renew = renew

    async def headers(self) -> dict[str, str]:
        """Return the headers that sign a request."""
        return {"Authorization": f"Bearer {self._token}"}

    async def reload(self) -> None:
        """Take the next token."""
        if self._renew is not None:
            self._token = self._renew()


def _configuration(token: str) -> Configuration:
    configuration: Configuration = type.__call__(Configuration)  # not the process-wide default
    configuration.host = "https://memory"
    configuration.api_key = {"BearerToken": f"Bearer {token}"}
    return configuration
