"""All settings of one gateway process, as the command line gives them."""

import ipaddress
import ssl
from dataclasses import dataclass

from asyncjob.errors import ConfigError
from asyncjob_gateway.errors import UnsafeSettingsError


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """Durations are in seconds, sizes in bytes; no namespaces means the gateway's own.

    `open` lets everyone in who can reach it, which only a loopback `host` may do.
    """

    host: str = "0.0.0.0"  # noqa: S104  # in a pod, callers come from outside
    port: int = 8080
    metrics_host: str = "0.0.0.0"  # noqa: S104  # the same
    metrics_port: int = 0
    namespaces: tuple[str, ...] = ()
    kubeconfig: str | None = None
    open: bool = False
    audiences: tuple[str, ...] = ()
    auth_cache: float = 30.0
    auth_rate: float = 50.0
    forward_headers: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    max_body: int = 4 * 1024 * 1024
    max_requests: int = 256
    max_connections: int = 1024
    max_streams: int = 256
    max_streams_per_caller: int = 32
    request_timeout: float = 30.0
    header_timeout: float = 10.0
    body_timeout: float = 10.0
    heartbeat: float = 15.0
    drain: float = 0.0
    grace: float = 20.0
    tls_cert: str | None = None
    tls_key: str | None = None

    def check(self) -> None:
        """Raise ConfigError: where anyone from elsewhere could do anything, or TLS cannot work."""
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ConfigError("--tls-cert and --tls-key go together: give both, or neither")
        if self.tls_cert:
            self._check_certificate(self.tls_cert)
        if self.open and not is_loopback(self.host):
            raise UnsafeSettingsError(
                f"an open gateway may only listen on loopback, not on {self.host}: "
                "give --host=127.0.0.1, or leave --open away and have callers send tokens"
            )

    def _check_certificate(self, certificate: str) -> None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
                certificate, self.tls_key, password=""
            )
        except OSError as error:
            raise ConfigError(
                f"--tls-cert, --tls-key: no certificate in PEM with its key, unencrypted: {error}"
            ) from error


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches the address; a name does not count, but one."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
