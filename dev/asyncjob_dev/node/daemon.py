"""Starts the node inside its namespaces, records how long that took, and restarts what ends.

Runs below `init`; nothing is stopped here, because the kernel does that when `init` ends.
"""

import json
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click

from asyncjob_dev.api import Api
from asyncjob_dev.controlplane import ControlPlane, ControlPlaneOptions
from asyncjob_dev.errors import ApiStatusError, ApiUnavailableError, DevError, NodeCommandError
from asyncjob_dev.files import write_private
from asyncjob_dev.node import components, host
from asyncjob_dev.node.components import NODE_NAME, NodeComponents, write_configs
from asyncjob_dev.node.plan import NodeNetwork, NodePaths, NodePlan, load_plan
from asyncjob_dev.process import ManagedProcess, restart_ended, wait_until
from asyncjob_dev.signals import unwind_on_signals

LINK_SECONDS = 30.0
NODE_SECONDS = 90.0
POLL_SECONDS = 1.0
API_PORT = 6443


class StepTimer:
    """Keeps the seconds that each step took."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()
        self.seconds: dict[str, float] = {}

    def lap(self, step: str) -> None:
        """Note the time since the step before."""
        now = self._clock()
        self.seconds[step] = round(now - self._last, 1)
        self._last = now


def plane_options(layout: NodePaths, block: NodeNetwork) -> ControlPlaneOptions:
    """Return a control plane for a real node: every controller, reached by pods."""
    return ControlPlaneOptions(
        data_dir=layout.plane,
        address=str(block.node),
        api_port=API_PORT,
        controllers=("*",),
        service_cidr=str(block.services),
        grace=0.0,
        apiserver_flags=("--allow-privileged=true", "--kubelet-preferred-address-types=InternalIP"),
    )


def start_node(layout: NodePaths, plan: NodePlan, watch: StepTimer) -> list[ManagedProcess]:
    """Start everything and return it once the node is ready."""
    parts = NodeComponents(layout, plan)
    host.prepare_mounts(layout)
    wait_until(lambda: is_linked(plan.block), "the link to the machine", within=LINK_SECONDS)
    write_configs(layout, plan)
    containerd = parts.containerd()
    containerd.spawn()
    watch.lap("environment")
    plane = ControlPlane(plane_options(layout, plan.block))
    plane.start()
    layout.kubeconfig.write_bytes(plane.kubeconfig.read_bytes())
    layout.kubeconfig.chmod(0o600)
    watch.lap("control plane")
    containerd.wait_ready()
    load_pause(parts, plan)
    watch.lap("containerd")
    others = [parts.scheduler(), parts.kubelet(), parts.proxy(), parts.dns()]
    for process in others:
        process.spawn()
    running = [*plane.processes, containerd, *others]
    wait_until(lambda: is_ready(plane.api), "the node", within=NODE_SECONDS, alive=running)
    watch.lap("node")
    return running


def is_linked(block: NodeNetwork) -> bool:
    """Return whether this network namespace has the node's address yet."""
    with socket.socket() as probe:
        try:
            probe.bind((str(block.node), 0))
        except OSError:
            return False
    return True


def load_pause(parts: NodeComponents, plan: NodePlan) -> None:
    """Import the one image that every pod needs."""
    program = Path(plan.programs["pause"]).read_bytes()
    packed = components.pause_image(program, components.PAUSE_IMAGE)
    command = parts.ctr("images", "import", "-")
    done = subprocess.run(command, input=packed, capture_output=True, check=False)
    if done.returncode:
        raise NodeCommandError(command, done.returncode, done.stderr.decode(errors="replace"))


def is_ready(api: Api) -> bool:
    """Return whether the Node object says Ready."""
    try:
        status = api.get(f"/api/v1/nodes/{NODE_NAME}").get("status", {})
    except (ApiStatusError, ApiUnavailableError):
        return False
    return any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in status.get("conditions", [])
    )


def supervise(processes: list[ManagedProcess]) -> None:
    """Start again what must not stay down, for ever."""
    while True:
        restart_ended(processes)
        time.sleep(POLL_SECONDS)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def main(folder: Path) -> None:
    """Serve the node whose plan is in FOLDER."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # or each request is a line
    layout = NodePaths(folder.parent, folder.name)
    plan = load_plan(layout.plan)
    assert plan is not None, f"{layout.plan} is missing"
    watch = StepTimer()
    try:
        with unwind_on_signals(), suppress(KeyboardInterrupt):
            processes = start_node(layout, plan, watch)
            write_private(layout.ready, json.dumps(watch.seconds))
            supervise(processes)
    except DevError as error:
        sys.stderr.write(f"{error}\n")
        os._exit(1)
    # Not in good order: with this process everything ends.
    os._exit(0)


if __name__ == "__main__":
    main()
