"""What can be chosen about a control plane."""

from dataclasses import dataclass
from pathlib import Path

from asyncjob_dev.ports import LOOPBACK

# Few, because each costs CPU on a small machine. No scheduler's or kubelet's business is done
# here, and no pod garbage collector runs: the nodes that development Pods name do not exist.
DEFAULT_CONTROLLERS = (
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "root-ca-certificate-publisher-controller",
    "namespace-controller",
    "garbage-collector-controller",
    "clusterrole-aggregation-controller",
    "validatingadmissionpolicy-status-controller",
)


@dataclass(frozen=True, kw_only=True)
class ControlPlaneOptions:
    """Choices with their defaults; times are in seconds.

    `address` is where the API listens; one that pods can reach is also told to them. Without
    `data_dir` everything lives in a temporary folder that goes when the control plane stops.
    Without `api_port` a free port is taken. `fsync=False` loses data when the machine crashes, not
    when a process does. Extra flags come last, so they win. `grace` is how long the API server and
    etcd may take to end; None means 5 with a `data_dir` of one's own and not at all without one.
    """

    data_dir: Path | None = None
    address: str = LOOPBACK
    api_port: int | None = None
    with_controller_manager: bool = True
    controllers: tuple[str, ...] = DEFAULT_CONTROLLERS
    fsync: bool = False
    quota_bytes: int = 8 << 30
    authorization: str = "Node,RBAC"
    issuer: str = "https://kubernetes.default.svc.cluster.local"
    audiences: tuple[str, ...] = ()
    service_cidr: str = "10.0.0.0/24"
    etcd_flags: tuple[str, ...] = ()
    apiserver_flags: tuple[str, ...] = ()
    controller_manager_flags: tuple[str, ...] = ()
    ready_within: float = 60.0
    grace: float | None = None

    @property
    def effective_grace(self) -> float:
        """The grace in force."""
        if self.grace is not None:
            return self.grace
        return 5.0 if self.data_dir else 0.0
