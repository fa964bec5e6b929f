"""The programs of a node: which are pinned and built, and what the machine has to bring along."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from asyncjob_dev.binaries import Resolver
from asyncjob_dev.binaries.pins import NODE_TOOLS, TOOLS
from asyncjob_dev.node.cgroups import hierarchies
from asyncjob_dev.node.configs import CNI_PLUGINS
from asyncjob_dev.node.errors import CannotRunNodeError

PLUGINS = ("host-local", "loopback", "portmap", "ptp")
PACKAGES = {
    "ip": "iproute2",
    "iptables": "iptables",
    "mount": "mount",
    "nsenter": "util-linux",
    "runc": "runc",
    "unshare": "util-linux",
}
"""Programs of the machine and Debian's packages that have them."""


def lacks(environ: Mapping[str, str]) -> list[str]:
    """Return what this machine lacks for a node, in words; nothing if all is there."""
    if sys.platform != "linux":
        return [f"{sys.platform} is not Linux"]
    missing = [
        f"{name} is missing (Debian: apt-get install {package})"
        for name, package in PACKAGES.items()
        if shutil.which(name, path=environ.get("PATH")) is None
    ]
    if any(not (Path(CNI_PLUGINS) / name).exists() for name in PLUGINS):
        missing.append(
            f"{CNI_PLUGINS} lacks some of {', '.join(PLUGINS)} "
            "(Debian: apt-get install containernetworking-plugins)"
        )
    if os.geteuid() != 0:
        missing.append("it takes root")
    if not hierarchies():
        missing.append("no cgroups are mounted")
    return missing


def programs(resolver: Resolver, environ: Mapping[str, str]) -> dict[str, str]:
    """Return where each pinned program is, by name, making what is not there yet."""
    if missing := lacks(environ):
        raise CannotRunNodeError(missing)
    return {tool: str(resolver.resolve(tool).path) for tool in (*TOOLS, *NODE_TOOLS)}
