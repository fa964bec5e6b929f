"""Where the cluster is and who we are there: the official client's configuration, kept fresh.

Every way of signing in that kubectl knows (token files, client certificates, exec plugins, OIDC)
is the official client's matter. A token is read again when it has grown old or was refused.
"""

import asyncio
import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import structlog
import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config import (
    ConfigException,
    load_incluster_config,
    load_kube_config,
)

from asyncjob.errors import ConfigError, NoClusterError
from asyncjob.names import is_namespace

_LOG = structlog.get_logger()

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_DEFAULT_KUBECONFIG = "~/.kube/config"
_TOKEN_MAX_AGE_SECONDS = 300.0
"""A token is read again after this long. Those of pods live an hour, and the kubelet replaces them
with a fifth of it left: twelve minutes in which the new one has to be read. Where tokens live
shorter, the answer 401 has them read again."""

_RELOAD_RETRY_SECONDS = 10.0
"""Between tries to read a token that cannot be read, or else each request would try, and warn."""

_HOW_TO_CONNECT = (
    "set KUBECONFIG or --kubeconfig, run inside a pod, "
    "or start a development cluster with `asyncjob dev`"
)


OpenPool = Callable[["ClusterAccess", str, int], aiohttp.ClientSession]


@dataclass(slots=True)
class ClusterAccess:
    """The API server's address, the TLS context, and headers that sign a request."""

    kubeconfig: str | None
    configuration: Configuration
    namespace: str
    ssl_context: ssl.SSLContext
    context: str | None = None
    """Context of the kubeconfig; None: its current one."""

    open_pool: "OpenPool | None" = None
    """How connections are made, from user agent and limit; None: by TCP."""

    _loaded_at: float = field(default=0.0)

    @property
    def host(self) -> str:
        """Return the base URL, without a trailing slash."""
        return str(self.configuration.host).rstrip("/")

    @property
    def server_hostname(self) -> str | None:
        """Return the name to check the certificate against, where it differs from the host."""
        return self.configuration.tls_server_name or None

    @property
    def proxy(self) -> str | None:
        """Return the proxy's URL, if one is configured."""
        return self.configuration.proxy or None

    async def headers(self) -> dict[str, str]:
        """Return the headers that sign a request, reading the token again if it is old."""
        if _now() - self._loaded_at > _TOKEN_MAX_AGE_SECONDS:
            await self._try_reload()
        token = await self.configuration.get_api_key_with_prefix("BearerToken")
        return {"Authorization": token} if token else {}

    async def reload(self) -> None:
        """Read the credentials again; raises NoClusterError where that fails."""
        self.configuration, _ = await _load_configuration(self.kubeconfig, self.context)
        self._loaded_at = _now()

    async def _try_reload(self) -> None:
        """Read the credentials again, or go on with those we have: they may well be good yet."""
        try:
            await self.reload()
        except NoClusterError as error:
            _LOG.warning("credentials not readable, going on with the old ones", error=str(error))
            self._loaded_at = _now() - _TOKEN_MAX_AGE_SECONDS + _RELOAD_RETRY_SECONDS


async def load_access(
    kubeconfig: str | None = None, namespace: str | None = None, context: str | None = None
) -> ClusterAccess:
    """Find the cluster: the given kubeconfig, else KUBECONFIG, else the pod, else ~/.kube/config.

    A `context` is one of a kubeconfig: with it the pod's own access does not count. Raises
    NoClusterError, with what to do about it, when none can be used.
    """
    kubeconfig = kubeconfig or os.environ.get("KUBECONFIG") or None
    configuration, default_namespace = await _load_configuration(kubeconfig, context)
    trust = _ssl_context(configuration)
    where = namespace or os.environ.get("POD_NAMESPACE") or default_namespace
    if not is_namespace(where):
        raise ConfigError(f"{where!r} is not a valid namespace name")
    return ClusterAccess(kubeconfig, configuration, where, trust, context, _loaded_at=_now())


async def _load_configuration(
    kubeconfig: str | None, context: str | None
) -> tuple[Configuration, str]:
    configuration = type.__call__(Configuration)  # not the process-wide default
    try:
        if not (kubeconfig or context) and "KUBERNETES_SERVICE_HOST" in os.environ:
            load_incluster_config(configuration)  # type: ignore[no-untyped-call]  # official client
            return configuration, _pod_namespace()
        _check_kubeconfig_exists(kubeconfig or _DEFAULT_KUBECONFIG)
        loader = await load_kube_config(  # type: ignore[no-untyped-call]  # official client
            kubeconfig, context=context, client_configuration=configuration
        )
    except (ConfigException, OSError, TypeError, yaml.YAMLError) as error:
        no_mapping = isinstance(error, TypeError)
        reason = "the kubeconfig is not a mapping" if no_mapping else " ".join(str(error).split())
        raise NoClusterError(f"no cluster is configured ({reason}): {_HOW_TO_CONNECT}") from error
    chosen = loader.current_context.get("context", {})
    return configuration, chosen.get("namespace") or "default"


def _check_kubeconfig_exists(kubeconfig: str | None) -> None:
    """Say so in one line where there is no such file; the official client logs one of its own."""
    files = [Path(part).expanduser() for part in (kubeconfig or "").split(os.pathsep) if part]
    if files and not any(file.exists() for file in files):
        raise NoClusterError(f"no cluster is configured (no {kubeconfig}): {_HOW_TO_CONNECT}")


def _ssl_context(configuration: Configuration) -> ssl.SSLContext:
    try:
        return RESTClientObject(configuration).ssl_context
    except (OSError, ssl.SSLError) as error:
        raise NoClusterError(
            f"the cluster's certificates cannot be read ({error}): {_HOW_TO_CONNECT}"
        ) from error


def _pod_namespace() -> str:
    return _NAMESPACE_FILE.read_text().strip() if _NAMESPACE_FILE.exists() else "default"


def _now() -> float:
    return asyncio.get_running_loop().time()
