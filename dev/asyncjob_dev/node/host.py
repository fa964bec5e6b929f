"""What a node takes of the machine.

Cgroups, a veth pair into its network namespace, mounts that replace parts of the file system, and
the cleanup of what the kernel does not remove by itself.
"""

import fcntl
import ipaddress
import json
import os
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from asyncjob_dev.errors import LeftoverError, NodeCommandError
from asyncjob_dev.node.plan import NodeNetwork, NodePaths, load_plan, nodes_in
from asyncjob_dev.progress import note

MOUNTED = Path("/sys/fs/cgroup")
CGROUPS_GONE_SECONDS = 30.0
POLL_SECONDS = 0.05


def cgroup_roots(mounted: Path = MOUNTED) -> list[Path]:
    """Return the roots to make a cgroup in; none where there are no cgroups."""
    if (mounted / "cgroup.controllers").exists():
        return [mounted]
    if not mounted.is_dir():
        return []
    return [path for path in mounted.iterdir() if _is_version_1(path)]


def create_cgroups(name: str, mounted: Path = MOUNTED) -> None:
    """Make the node's cgroups; harmless where they are."""
    for root in cgroup_roots(mounted):
        (root / name).mkdir(exist_ok=True)


def remove_cgroups(name: str, mounted: Path = MOUNTED) -> None:
    """Remove the node's cgroups with all below, once their processes have ended."""
    deadline = time.monotonic() + CGROUPS_GONE_SECONDS
    for root in cgroup_roots(mounted):
        while not _removed(root / name):
            if time.monotonic() >= deadline:
                raise LeftoverError(f"cgroup {root / name}")
            time.sleep(POLL_SECONDS)


def _is_version_1(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and (path / "cgroup.procs").exists()


def _removed(cgroup: Path) -> bool:
    if not cgroup.is_dir():
        return True
    # Only folders: the files in there are the kernel's and cannot be unlinked.
    below = sorted((path for path in cgroup.rglob("*/")), reverse=True)
    try:
        for path in (*below, cgroup):
            path.rmdir()
    except FileNotFoundError:
        return not cgroup.exists()
    except OSError:
        return False
    return True


INSIDE = "eth0"


def run_command(*command: str) -> str:
    """Run a program of the machine; raises NodeCommandError."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NodeCommandError(command, done.returncode, done.stderr or done.stdout)
    return done.stdout


def routed_networks() -> list[ipaddress.IPv4Network]:
    """Return the networks that this machine routes anywhere, in any table."""
    routes = json.loads(run_command("ip", "-json", "-4", "route", "show", "table", "all"))
    found = {route["dst"] for route in routes} - {"default"}
    return [ipaddress.IPv4Network(network, strict=False) for network in found]


def connect_veth(block: NodeNetwork, pid: int, owner: str) -> None:
    """Lay the cable into the network namespace of a process, and write the owner on it."""
    enter = ("nsenter", f"--target={pid}", "--net", "--")
    peer = ("peer", "name", INSIDE, "netns", str(pid))
    run_command("ip", "link", "add", block.device, "type", "veth", *peer)
    run_command("ip", "link", "set", block.device, "alias", owner)
    _set_address(block.device, f"{block.machine}/{block.link.prefixlen}")
    run_command("ip", "route", "add", str(block.whole), "via", str(block.node), "dev", block.device)
    run_command(*enter, "ip", "link", "set", "lo", "up")
    _set_address(INSIDE, f"{block.node}/{block.link.prefixlen}", *enter)
    run_command(*enter, "ip", "route", "add", "default", "via", str(block.machine))


def disconnect_veth(block: NodeNetwork, owner: str) -> None:
    """Take the owner's cable away, unless it has gone with its namespace.

    The kernel removes dead namespaces when it comes to it, on a busy machine after many seconds.
    Another node may have the block by then, and a cable of the same name.
    """
    if _owner(block.device) != owner:
        return
    with suppress(NodeCommandError):
        run_command("ip", "link", "delete", block.device)
    if _owner(block.device) == owner:
        raise LeftoverError(f"network device {block.device}")


def _set_address(device: str, address: str, *enter: str) -> None:
    run_command(*enter, "ip", "address", "add", address, "dev", device)
    run_command(*enter, "ip", "link", "set", device, "up")


def _owner(device: str) -> str:
    try:
        shown = json.loads(run_command("ip", "-json", "link", "show", device))
    except NodeCommandError:
        return ""
    return str(shown[0].get("ifalias", ""))


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


FILES_GONE_SECONDS = 30.0
FILES_RETRY_SECONDS = 0.1


def is_locked(lock: Path) -> bool:
    """Return whether anything of the node still holds its lock."""
    try:
        file = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def remove_node(layout: NodePaths) -> None:
    """Remove what is left of a dead node, whose last processes may be dying still."""
    remove_cgroups(layout.cgroup)
    if plan := load_plan(layout.plan):
        disconnect_veth(plan.block, layout.owner)
    shutil.rmtree(layout.root, ignore_errors=True)
    # Counted from the end of the first pass, which may take long on a busy disk: this is how long
    # dying processes have to let go of the rest.
    deadline = time.monotonic() + FILES_GONE_SECONDS
    while layout.root.exists():
        if time.monotonic() >= deadline:
            raise LeftoverError(layout.root)
        time.sleep(FILES_RETRY_SECONDS)
        shutil.rmtree(layout.root, ignore_errors=True)


def remove_dead_nodes(nodes: Path) -> None:
    """Remove what is left of every node whose starter was killed; call under the lock of all.

    What resists is named and left: it is in the way of no other node.
    """
    for layout in nodes_in(nodes):
        if not is_locked(layout.lock):
            try:
                remove_node(layout)
            except LeftoverError as error:
                note(str(error))
