"""What is decided about a node before it starts: its addresses, its files, its programs.

Written by the machine's side, read by the node's own. Each node takes a network of its own, so that
several stand side by side and the machine can route to their pods and Services.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from asyncjob_dev.cache_folder import cache_dir
from asyncjob_dev.errors import NodeNameError, NoFreeBlockError
from asyncjob_dev.files import write_private

FIRST_NETWORK, LAST_NETWORK = 208, 239


@dataclass(frozen=True)
class NodeNetwork:
    """The network 10.<number>.0.0/16 and what it is cut into."""

    number: int

    @property
    def whole(self) -> IPv4Network:
        """All of it: what the machine routes to the node."""
        return IPv4Network(f"10.{self.number}.0.0/16")

    @property
    def services(self) -> IPv4Network:
        """Where Services have their addresses."""
        return IPv4Network(f"10.{self.number}.0.0/20")

    @property
    def pods(self) -> IPv4Network:
        """Where pods have theirs."""
        return IPv4Network(f"10.{self.number}.64.0/18")

    @property
    def link(self) -> IPv4Network:
        """The cable between machine and node."""
        return IPv4Network(f"10.{self.number}.255.0/30")

    @property
    def machine(self) -> IPv4Address:
        """The machine's end of it."""
        return self.link[1]

    @property
    def node(self) -> IPv4Address:
        """The node's end: its address, and that of its API server and DNS."""
        return self.link[2]

    @property
    def device(self) -> str:
        """The machine's network device."""
        return f"ajnode{self.number}"


def choose_network(taken: Iterable[IPv4Network]) -> NodeNetwork:
    """Return the first block that overlaps with nothing; raises NoFreeBlockError."""
    known = list(taken)
    blocks = [NodeNetwork(number) for number in range(FIRST_NETWORK, LAST_NETWORK + 1)]
    for block in blocks:
        if not any(block.whole.overlaps(other) for other in known):
            return block
    raise NoFreeBlockError(str(blocks[0].whole), str(blocks[-1].whole))


IS_NAME = re.compile("[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?")


def nodes_dir(environ: Mapping[str, str]) -> Path:
    """Return the folder of all nodes."""
    return cache_dir(environ) / "nodes"


class NodePaths:
    """Paths of one node below the folder of all, and its names on the machine."""

    def __init__(self, nodes: Path, name: str) -> None:
        if not IS_NAME.fullmatch(name):
            raise NodeNameError(name)
        root = nodes / name
        self.nodes, self.name, self.root = nodes, name, root
        self.lock = root / "lock"
        """Held as long as anything of the node lives."""
        self.plan = root / "plan.json"
        """What was decided about the node before it started."""
        self.pid = root / "pid"
        """The machine's number of the node's first process."""
        self.ready = root / "ready.json"
        """There once the node is ready: the seconds that each step took."""
        self.kubeconfig = root / "kubeconfig"
        """The admin's kubeconfig, for the machine as for the node."""
        self.plane = root / "control-plane"
        """Data, keys and logs of the control plane."""
        self.config = root / "config"
        """Configuration files of the node's programs."""
        self.containerd = root / "containerd"
        """Images and containers."""
        self.kubelet = root / "kubelet"
        """Volumes and the like of pods."""
        self.pod_logs = root / "pod-logs"
        """What pods have written."""
        self.shadows = root / "shadows"
        """Folders and files that the node sees in the place of the machine's."""
        digest = hashlib.sha256(str(root).encode()).hexdigest()[:8]
        self.owner = f"asyncjob-node-{name}-{digest}"
        """What tells this node from all others of the machine, those of other caches included."""
        self.cgroup = self.owner
        """The name of the node's cgroups."""

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


@dataclass(frozen=True)
class NodePlan:
    """A node's addresses, and where its programs are."""

    block: NodeNetwork
    programs: Mapping[str, str]


def save_plan(path: Path, plan: NodePlan) -> None:
    """Write the plan in one step."""
    write_private(path, json.dumps({"block": plan.block.number, "programs": dict(plan.programs)}))


def load_plan(path: Path) -> NodePlan | None:
    """Return the plan; None where there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return NodePlan(NodeNetwork(found["block"]), found["programs"])
