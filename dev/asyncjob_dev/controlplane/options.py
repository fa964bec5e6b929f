"""What can be chosen about a control plane, and where it keeps its files. Pure."""

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


class ControlPlanePaths:
    """Paths below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.etcd = root / "etcd"
        """The data of etcd."""
        self.certs = root / "certs"
        """Where the API server puts the certificate it signs for itself."""
        self.ca_file = self.certs / "apiserver.crt"
        """That certificate with its CA: what clients trust."""
        self.signing_key = root / "service-account.key"
        """The private key of service account tokens."""
        self.tokens = root / "tokens.csv"
        """The static token of the admin."""
        self.kubeconfig = root / "kubeconfig"
        """The admin's kubeconfig."""
        self.kubectl_cache = root / "kubectl-cache"
        """Discovery is cached by address, which another control plane may have had before."""

    def log(self, process: str) -> Path:
        """Return the log file of a process."""
        return self.root / "logs" / f"{process}.log"

    def make(self) -> None:
        """Create the folders."""
        for folder in (self.etcd, self.certs, self.root / "logs"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
