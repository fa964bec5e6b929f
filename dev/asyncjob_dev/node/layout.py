"""Where a node keeps its files. Pure."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from asyncjob_dev.binaries.cache import cache_dir
from asyncjob_dev.node.errors import NodeNameError

IS_NAME = re.compile("[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?")


def nodes_dir(environ: Mapping[str, str]) -> Path:
    """Return the folder of all nodes."""
    return cache_dir(environ) / "nodes"


@dataclass(frozen=True)
class NodePaths:
    """Paths of one node below the folder of all."""

    nodes: Path
    name: str

    def __post_init__(self) -> None:
        if not IS_NAME.fullmatch(self.name):
            raise NodeNameError(self.name)

    @property
    def root(self) -> Path:
        """The node's folder."""
        return self.nodes / self.name

    @property
    def lock(self) -> Path:
        """Held as long as anything of the node lives."""
        return self.root / "lock"

    @property
    def plan(self) -> Path:
        """What was decided about the node before it started."""
        return self.root / "plan.json"

    @property
    def pid(self) -> Path:
        """The machine's number of the node's first process."""
        return self.root / "pid"

    @property
    def ready(self) -> Path:
        """There once the node is ready: the seconds that each step took."""
        return self.root / "ready.json"

    @property
    def kubeconfig(self) -> Path:
        """The admin's kubeconfig, for the machine as for the node."""
        return self.root / "kubeconfig"

    @property
    def plane(self) -> Path:
        """Data, keys and logs of the control plane."""
        return self.root / "control-plane"

    @property
    def config(self) -> Path:
        """Configuration files of the node's programs."""
        return self.root / "config"

    @property
    def containerd(self) -> Path:
        """Images and containers."""
        return self.root / "containerd"

    @property
    def kubelet(self) -> Path:
        """Volumes and the like of pods."""
        return self.root / "kubelet"

    @property
    def pod_logs(self) -> Path:
        """What pods have written."""
        return self.root / "pod-logs"

    @property
    def shadows(self) -> Path:
        """Folders and files that the node sees in the place of the machine's."""
        return self.root / "shadows"

    @property
    def owner(self) -> str:
        """What tells this node from all others of the machine, those of other caches included."""
        digest = hashlib.sha256(str(self.root).encode()).hexdigest()[:8]
        return f"asyncjob-node-{self.name}-{digest}"

    @property
    def cgroup(self) -> str:
        """The name of the node's cgroups."""
        return self.owner

    def log(self, program: str) -> Path:
        """Return the log file of a program."""
        return self.root / "logs" / f"{program}.log"

    def make(self) -> None:
        """Create the folders."""
        for path in (self.config, self.containerd, self.kubelet, self.pod_logs, self.shadows):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.log("").parent.mkdir(exist_ok=True)


def nodes_in(nodes: Path) -> list[NodePaths]:
    """Return the nodes that have a folder in the folder of all; other things are left alone."""
    named = [path for path in nodes.iterdir() if path.is_dir() and IS_NAME.fullmatch(path.name)]
    return [NodePaths(nodes, path.name) for path in named]
