"""Where a control plane keeps its files. Pure."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ControlPlanePaths:
    """Paths below one folder."""

    root: Path

    @property
    def etcd(self) -> Path:
        """The data of etcd."""
        return self.root / "etcd"

    @property
    def certs(self) -> Path:
        """Where the API server puts the certificate it signs for itself."""
        return self.root / "certs"

    @property
    def ca_file(self) -> Path:
        """That certificate with its CA: what clients trust."""
        return self.certs / "apiserver.crt"

    @property
    def signing_key(self) -> Path:
        """The private key of service account tokens."""
        return self.root / "service-account.key"

    @property
    def tokens(self) -> Path:
        """The static token of the admin."""
        return self.root / "tokens.csv"

    @property
    def kubeconfig(self) -> Path:
        """The admin's kubeconfig."""
        return self.root / "kubeconfig"

    @property
    def kubectl_cache(self) -> Path:
        """Discovery is cached by address, which another control plane may have had before."""
        return self.root / "kubectl-cache"

    def log(self, process: str) -> Path:
        """Return the log file of a process."""
        return self.root / "logs" / f"{process}.log"

    def make(self) -> None:
        """Create the folders."""
        for folder in (self.etcd, self.certs, self.root / "logs"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
