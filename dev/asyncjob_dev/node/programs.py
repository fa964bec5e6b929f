"""The programs of a node: which are pinned and built, and what the machine has to bring along."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from asyncjob_dev.binaries import Resolver
from asyncjob_dev.binaries.pins import NODE_TOOLS, TOOLS
from asyncjob_dev.errors import CannotRunNodeError
from asyncjob_dev.node.components import CNI_PLUGINS
from asyncjob_dev.node.host import cgroup_roots

PLUGINS = ("host-local", "loopback", "portmap", "ptp")
NAMESPACES = ("--net", "--mount", "--pid", "--propagation=slave", "--mount-proc")
"""Options of `unshare`: what a node has of its own, and mounts that go only inwards."""
PACKAGES = {
    "ip": "iproute2",
    "iptables": "iptables",
    "mount": "mount",
    "nsenter": "util-linux",
    "runc": "runc",
    "unshare": "util-linux",
}
"""Programs of the machine and Debian's packages that have them."""


def missing_requirements(environ: Mapping[str, str]) -> list[str]:
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
    return missing or [reason for reason in (_cgroup_problem(), _namespace_problem()) if reason]


def _cgroup_problem() -> str:
    roots = cgroup_roots()
    if not roots:
        return "no cgroups are mounted"
    closed = [str(root) for root in roots if not os.access(root, os.W_OK)]
    return f"no cgroup can be made in {', '.join(closed)}" if closed else ""


def _namespace_problem() -> str:
    command = ["unshare", *NAMESPACES, "--fork", "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"no namespaces can be made: {done.stderr.strip()}" if done.returncode else ""


def resolve_programs(resolver: Resolver, environ: Mapping[str, str]) -> dict[str, str]:
    """Return where each pinned program is, by name, making what is not there yet."""
    if missing := missing_requirements(environ):
        raise CannotRunNodeError(missing)
    return {tool: str(resolver.resolve(tool).path) for tool in (*TOOLS, *NODE_TOOLS)}
