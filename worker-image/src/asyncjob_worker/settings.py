"""Settings of a worker process, and who it is."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from asyncjob.errors import ConfigError
from asyncjob.lifecycle.claim import LeaseHolder
from asyncjob.logs import LogFormat
from asyncjob.names import DEFAULT_QUEUE
from asyncjob_worker.cpus import usable_cpus
from asyncjob_worker.offload.config import OffloadSettings


@dataclass(frozen=True, slots=True)
class Settings:
    """What a worker is told at its start. Times are in seconds, sizes in bytes."""

    app: str = ""
    """Where handlers' own processes find the app: module:attribute."""

    log_format: LogFormat = "text"
    """In which form they log."""

    jobs_per_process: int = 0
    """A handler's process is replaced after so many jobs; 0 means never."""

    queue: str = DEFAULT_QUEUE
    concurrency: int = 0
    """Jobs at a time; 0 means the usable CPUs."""

    grace: float = 30.0
    """After SIGTERM, how long handlers may go on before their jobs are released."""

    stop_wait: float = 5.0
    """How long a handler that was told to stop may take before it is abandoned."""

    report_interval: float = 1.0
    """Progress and checkpoints are stored at most this often."""

    worker_lease_interval: float = 15.0
    """How often the worker renews its own Lease."""

    takeover_delay: float = 0.15
    """A job is left to the worker it is dealt to for so long, times that worker's rank."""

    max_backlog: int = 100_000
    """Queued jobs kept in mind; beyond that the rest is looked at later."""

    max_free_json: int = 256 * 1024
    """Largest checkpoint or result kept in the job itself."""

    offload: OffloadSettings = field(default_factory=OffloadSettings)
    """Where larger results go, and payloads may come from."""

    require_policy: bool = True
    """Refuse to run where the API server does not enforce ownership."""

    health_port: int = 0
    """Port of health and metrics; 0 means none."""

    health_host: str = "0.0.0.0"  # noqa: S104  # the kubelet comes from outside the pod
    """Address they are served on."""

    stall_limit: float = 300.0
    """How long the event loop may stand still before the process counts as dead; 0 means ever."""

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> "Settings":
        """Return the settings that the options of the command line make; the rest is left out."""
        names = {item.name for item in fields(cls)}
        known = {name: value for name, value in options.items() if name in names}
        return cls(require_policy=not options.get("allow_unenforced", False), **known)

    def slots(self) -> int:
        """Return how many jobs run at a time."""
        return self.concurrency or usable_cpus()


def identify(pod: str | None, pod_uid: str | None) -> LeaseHolder:
    """Return who this process is: its pod, and an identity that no other start shares.

    Raises ConfigError where the pod is not known.
    """
    if not pod or not pod_uid:
        raise ConfigError(
            "POD_NAME and POD_UID are not set: the worker's pod takes them from its own "
            "metadata.name and metadata.uid; `make up` sets them for development"
        )
    return LeaseHolder(pod, pod_uid, f"{pod}/{secrets.token_hex(4)}")
