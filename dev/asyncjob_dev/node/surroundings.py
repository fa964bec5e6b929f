"""What the node sees of the machine: in a mount namespace of its own, some of it is replaced.

The node's /run is empty memory. Where its programs keep things at fixed places, they keep them in
the node's folder. Settings of the kernel that the kubelet insists on are shown to it as it wants
them and stay as they are: they are the machine's.
"""

from pathlib import Path

from asyncjob_dev.node.layout import NodePaths
from asyncjob_dev.node.link import run_command

FIXED_PATHS = (Path("/var/lib/cni"), Path("/var/log/containers"))
KUBELET_DIR = Path("/run/kubelet")
"""Its folder as it sees it: sockets are in there, whose paths must be short."""
KUBELET_SYSCTLS = {
    "kernel/keys/root_maxbytes": "25000000",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
}
FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
"""Of the network namespace, not of the machine."""


def prepare_mounts(layout: NodePaths) -> None:
    """Arrange it all; called inside the node's namespaces, before anything else starts there."""
    # Pods may ask that mounts propagate; towards the machine nothing does.
    run_command("mount", "--make-rshared", "/")
    run_command("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    _shadow_folder(KUBELET_DIR, layout.kubelet)
    for place in FIXED_PATHS:
        _shadow_folder(place, layout.shadows / place.name)
    for name, value in KUBELET_SYSCTLS.items():
        _shadow_setting(Path("/proc/sys") / name, value, layout.shadows / name.replace("/", "."))
    FORWARDING.write_text("1\n", encoding="ascii")


def has_capability(number: int, status: Path = Path("/proc/self/status")) -> bool:
    """Return whether this process holds a capability."""
    words = status.read_text(encoding="ascii").split()
    return bool(int(words[words.index("CapEff:") + 1], 16) >> number & 1)


def _shadow_folder(place: Path, source: Path) -> None:
    source.mkdir(exist_ok=True)
    place.mkdir(parents=True, exist_ok=True)
    run_command("mount", "--bind", str(source), str(place))


def _shadow_setting(setting: Path, wanted: str, shadow: Path) -> None:
    if setting.exists() and setting.read_text(encoding="ascii").strip() != wanted:
        shadow.write_text(f"{wanted}\n", encoding="ascii")
        run_command("mount", "--bind", str(shadow), str(setting))
