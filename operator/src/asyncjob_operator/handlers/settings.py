"""All settings of one operator process, as the command line gives them."""

from dataclasses import dataclass, field

from asyncjob.names import OPERATOR_LEASE
from asyncjob_operator.core.options import Options, RetentionOptions


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations are in seconds; no namespaces means all of them; a port of 0 means none."""

    namespaces: tuple[str, ...] = ()
    kubeconfig: str | None = None
    identity: str = ""
    options: Options = field(default_factory=Options)
    resync_interval: float = 300.0
    backoff_initial: float = 1.0
    backoff_max: float = 60.0
    worker_timeout: float = 120.0
    retention: bool = True
    retention_options: RetentionOptions = field(default_factory=RetentionOptions)
    retention_interval: float = 60.0
    retention_rate: float = 100.0
    leader_elect: bool = True
    lease_namespace: str | None = None
    lease_name: str = OPERATOR_LEASE
    metrics_port: int = 0
    health_port: int = 0

    @property
    def scopes(self) -> tuple[str | None, ...]:
        """Return the namespaces to list and watch; None is all of them at once."""
        return self.namespaces or (None,)
