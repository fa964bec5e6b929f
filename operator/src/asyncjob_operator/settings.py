"""All settings of one operator process, as the command line gives them."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from asyncjob.kube.pacing import MAX_OUTAGE_BACKOFF, OUTAGE_BACKOFF_INITIAL
from asyncjob.names import OPERATOR_LEASE
from asyncjob_operator.core.options import DecisionOptions, RetentionOptions

BOOKMARK_SECONDS: Final = 60.0
"""How often the API server sends one on each watch, about."""


class JobWatchSource(StrEnum):
    """Who watches AsyncJobs. AsyncQueues and AsyncCronJobs are always watched by kopf."""

    DIRECT = "direct"
    """The SDK's own watch: half of the CPU for an event."""

    KOPF = "kopf"
    """A handler of kopf's, as for the other resources."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations are in seconds; no namespaces means all of them; a port of 0 means none."""

    namespaces: tuple[str, ...] = ()
    kubeconfig: str | None = None
    identity: str = ""
    options: DecisionOptions = field(default_factory=DecisionOptions)
    resync_interval: float = 300.0
    backoff_initial: float = OUTAGE_BACKOFF_INITIAL
    backoff_max: float = MAX_OUTAGE_BACKOFF
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
    job_watch: JobWatchSource = JobWatchSource.DIRECT

    @property
    def silence_limit(self) -> float:
        """Return after how many seconds without a sign a loop or watch counts as dead.

        Three resyncs may fail; bookmarks come once a minute, pauses last as long as they may.
        """
        return max(3 * self.resync_interval, 3 * BOOKMARK_SECONDS, 2 * self.backoff_max)

    @property
    def watched_namespaces(self) -> tuple[str | None, ...]:
        """Return the namespaces to list and watch; None is all of them at once."""
        return self.namespaces or (None,)
