"""The virtual cable between the machine and a node's network namespace.

It goes with the namespace. Until then the machine routes the node's whole network over it, so that
tests and kubectl reach API server, Services and pods from outside.
"""

import ipaddress
import json
import subprocess
from contextlib import suppress

from asyncjob_dev.node.errors import CommandFailedError, LeftoverError
from asyncjob_dev.node.network import NodeNetwork

INSIDE = "eth0"


def run_command(*command: str) -> str:
    """Run a program of the machine; raises CommandFailedError."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandFailedError(command, done.returncode, done.stderr or done.stdout)
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
    with suppress(CommandFailedError):
        run_command("ip", "link", "delete", block.device)
    if _owner(block.device) == owner:
        raise LeftoverError(f"network device {block.device}")


def _set_address(device: str, address: str, *enter: str) -> None:
    run_command(*enter, "ip", "address", "add", address, "dev", device)
    run_command(*enter, "ip", "link", "set", device, "up")


def _owner(device: str) -> str:
    try:
        shown = json.loads(run_command("ip", "-json", "link", "show", device))
    except CommandFailedError:
        return ""
    return str(shown[0].get("ifalias", ""))
