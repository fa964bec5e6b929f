"""Takes away what a node leaves that the kernel does not: cgroups, a network device, files."""

import fcntl
import os
import shutil
import time
from pathlib import Path

from asyncjob_dev.node import cgroups, link
from asyncjob_dev.node.errors import LeftoverError
from asyncjob_dev.node.layout import NodePaths, nodes_in
from asyncjob_dev.node.plan import load_plan
from asyncjob_dev.progress import note

FILES_GONE_SECONDS = 30.0


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
    cgroups.remove_cgroups(layout.cgroup)
    if plan := load_plan(layout.plan):
        link.disconnect_veth(plan.block, layout.owner)
    deadline = time.monotonic() + FILES_GONE_SECONDS
    while layout.root.exists():
        shutil.rmtree(layout.root, ignore_errors=True)
        if time.monotonic() >= deadline:
            raise LeftoverError(layout.root)


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
