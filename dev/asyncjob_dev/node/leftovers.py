"""Takes away what a node leaves that the kernel does not: cgroups, a network device, files."""

import fcntl
import os
import shutil
import time
from pathlib import Path

from asyncjob_dev.files import folder_errors_in_words
from asyncjob_dev.node import cgroups, link
from asyncjob_dev.node.errors import LeftoverError
from asyncjob_dev.node.layout import Layout
from asyncjob_dev.node.plan import load

POLL_SECONDS = 0.05


def alive(lock: Path) -> bool:
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


def wait_dead(lock: Path, within: float) -> bool:
    """Wait until the node's first process, and with it all others, has ended."""
    deadline = time.monotonic() + within
    while alive(lock):
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def remove(layout: Layout) -> None:
    """Remove what is left of a dead node; raises LeftoverError."""
    cgroups.remove(layout.cgroup)
    if plan := load(layout.plan):
        link.disconnect(plan.block)
    with folder_errors_in_words(layout.root):
        shutil.rmtree(layout.root, ignore_errors=True)
        if layout.root.exists():
            raise LeftoverError(layout.root, 0)


def sweep(nodes: Path) -> None:
    """Remove what is left of every node whose starter was killed; call under the lock of all."""
    for folder in nodes.glob("[!.]*"):
        layout = Layout(nodes, folder.name)
        if folder.is_dir() and not alive(layout.lock):
            remove(layout)
