"""Settings of a worker process, and its identity as a lease holder.

Among them: concurrency (by default the CPUs that the container may use), and the object store for
large payloads and results.
"""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import ceil
from pathlib import Path
from typing import Any, Literal

from asyncjob.lifecycle.claim import LeaseHolder
from asyncjob.logs import LogFormat
from asyncjob.names import DEFAULT_QUEUE, OPERATOR_LEASE
from asyncjob.offload import Address, AllowList, Store, default_prefixes
from asyncjob.offload.addresses import RESULTS_FOLDER
from asyncjob.offload.store import MAX_OBJECT_BYTES, REQUEST_TIMEOUT_SECONDS
from asyncjob_worker.errors import NoPodError

CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class OffloadSettings:
    """Where large results go and payloads may come from. Sizes in bytes, times in seconds.

    `options` are for the driver of `url`; they are never shown, because they may hold credentials.
    """

    url: Address | None = None
    prefixes: tuple[Address, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    limit: int = MAX_OBJECT_BYTES
    timeout: float = REQUEST_TIMEOUT_SECONDS

    def allowed(self, namespace: str) -> AllowList:
        """Return the prefixes that payloads of jobs in a namespace may be read from."""
        if self.prefixes or self.url is None:
            return AllowList(self.prefixes)
        return AllowList(default_prefixes(self.url, namespace))

    def results(self, namespace: str) -> Address | None:
        """Return the folder that results of jobs in a namespace go to."""
        return self.url.join(RESULTS_FOLDER, namespace) if self.url else None

    def store(self) -> Store:
        """Return the client that reads and writes there."""
        options = {self.url.protocol: self.options} if self.url else {}
        return Store(options, limit=self.limit, timeout=self.timeout)

    def protocols(self) -> set[str]:
        """Return the protocols for which a driver is needed."""
        return {address.protocol for address in (self.url, *self.prefixes) if address}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one worker process. Times are in seconds, sizes in bytes."""

    app: str = ""
    """The app, as module:attribute, for the processes that handlers run in."""

    log_format: LogFormat = "text"
    """The log format of those processes."""

    jobs_per_process: int = 0
    """A handler's process is replaced after this many jobs; 0 means never."""

    queue: str = DEFAULT_QUEUE
    concurrency: int = 0
    """Number of jobs at a time; 0 means the number of usable CPUs."""

    grace: float = 30.0
    """How long handlers may go on after SIGTERM before their jobs are released."""

    stop_grace_seconds: float = 5.0
    """How long a handler that was asked to stop may take before it is killed or abandoned."""

    report_interval: float = 1.0
    """Shortest time between two writes of a job's progress and checkpoints."""

    worker_lease_interval: float = 15.0
    """How often the worker renews its own Lease."""

    park: Literal["auto", "always", "never"] = "auto"
    """Whether a handler that sleeps gives up its slot: if the leading operator wakes it again."""

    operator_namespace: str | None = None
    """Namespace of the operators' Lease; None means the worker's own."""

    operator_lease: str = OPERATOR_LEASE
    """Name of the operators' Lease."""

    takeover_delay: float = 0.15
    """How long another worker's job is left to it, times this worker's rank for the job."""

    max_backlog: int = 100_000
    """Queued jobs held in memory; the rest is listed again once these are used up."""

    max_free_json: int = 256 * 1024
    """Largest checkpoint or result stored in the job itself."""

    offload: OffloadSettings = field(default_factory=OffloadSettings)
    """Where larger results go and payloads may come from."""

    handler_record: str = ""
    """File that begin, end and checkpoints of handlers are recorded in; empty means none."""

    require_policy: bool = True
    """Whether to refuse to run where the API server does not enforce ownership."""

    health_port: int = 0
    """Port of the health checks and metrics; 0 means none."""

    health_host: str = "0.0.0.0"  # noqa: S104  # the kubelet comes from outside the pod
    """Address they are served on."""

    stall_limit: float = 300.0
    """How long the event loop may be blocked before /livez fails; 0 means no limit."""

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> "Settings":
        """Return the settings from the command's options; options of other things are ignored."""
        names = {field_.name for field_ in fields(cls)}
        known = {name: value for name, value in options.items() if name in names}
        return cls(require_policy=not options.get("allow_unenforced", False), **known)

    def slots(self) -> int:
        """Return how many jobs run at the same time."""
        return self.concurrency or usable_cpus()


def identify(pod: str | None, pod_uid: str | None) -> LeaseHolder:
    """Return the lease holder that this process is: its pod, and an identity unique to this start.

    Raises NoPodError if the pod's name or UID is missing.
    """
    if not pod or not pod_uid:
        raise NoPodError(
            "POD_NAME and POD_UID are not set: the worker's pod takes them from its own "
            "metadata.name and metadata.uid; `asyncjob dev` sets them for development"
        )
    return LeaseHolder(pod, pod_uid, f"{pod}/{secrets.token_hex(4)}")


def usable_cpus(cgroup: Path = CGROUP) -> int:
    """Return the CPUs of the process's affinity, within its container's quota; at least 1."""
    quota = _quota(cgroup)
    cpus = _affinity()
    return max(1, cpus if quota is None else min(cpus, ceil(quota)))


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quota(cgroup: Path) -> float | None:
    """Return the CPUs that the container's quota allows, None if it has none."""
    values = _read_cgroup(cgroup / "cpu.max").split()
    if not values:  # not cgroup v2
        names = ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")
        values = [_read_cgroup(cgroup / name).strip() for name in names]
    if len(values) < 2 or not all(part.isdigit() for part in values):  # noqa: PLR2004
        return None
    quota, period = (int(part) for part in values[:2])
    return quota / period if period else None


def _read_cgroup(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""
