"""One node, seen from the machine: started, entered, given images, and taken away."""

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from asyncjob_dev.binaries import Resolver, default_resolver
from asyncjob_dev.errors import NodeCommandError, NodeInUseError, NodeNotUpError
from asyncjob_dev.node import host, init
from asyncjob_dev.node.components import NodeComponents
from asyncjob_dev.node.plan import (
    NodePaths,
    NodePlan,
    choose_network,
    load_plan,
    nodes_dir,
    save_plan,
)
from asyncjob_dev.node.programs import NAMESPACES, resolve_programs
from asyncjob_dev.process import ManagedProcess, wait_until
from asyncjob_dev.progress import ProgressLine

START_LOCK = Path("/run/asyncjob-nodes.lock")
READY_SECONDS = 180.0
STOP_SECONDS = 20.0
FIRST_PROCESS_SECONDS = 10.0


class Node:
    """A node by its name; a context manager that takes it away.

    With `outlives_us` it stays when this process ends, to be taken down by another; otherwise it
    ends with this process, even if that is killed.
    """

    def __init__(
        self,
        name: str,
        environ: Mapping[str, str] = os.environ,
        *,
        resolver: Resolver | None = None,
        outlives_us: bool = False,
    ) -> None:
        self.layout = NodePaths(nodes_dir(environ), name)
        self._environ = environ
        self._resolver = resolver or default_resolver()
        self._outlives_us = outlives_us
        self._process = self._first_process()

    @property
    def kubeconfig(self) -> Path:
        """The admin's kubeconfig: good on the machine and inside the node alike."""
        return self.layout.kubeconfig

    @property
    def is_up(self) -> bool:
        """Whether anything of it runs."""
        return host.is_locked(self.layout.lock)

    @property
    def seconds(self) -> dict[str, float]:
        """What each step of the start took; nothing before the node is ready."""
        with suppress(FileNotFoundError):
            found: dict[str, float] = json.loads(self.layout.ready.read_text(encoding="utf-8"))
            return found
        return {}

    def start(self) -> None:
        """Return when the node is ready; else leave nothing behind."""
        found = resolve_programs(self._resolver, self._environ)
        with ProgressLine(f"starting the node {self.layout.name}"):
            with self._exclusively():
                self._start_first_process(found)
            try:
                self._process.wait_ready()
            except BaseException:
                self.stop()
                raise

    def stop(self) -> bool:
        """End everything and remove what is left; returns whether anything ran."""
        if not self.layout.root.exists():
            return False
        with self._exclusively(sweep=False):
            was_up = self._end()
            self._process.kill()
            host.remove_node(self.layout)
        return was_up

    def enter(self, *command: str) -> list[str]:
        """Return the command line that runs a command inside the node."""
        target = f"--target={self._pid()}"
        return ["nsenter", target, "--net", "--mount", "--pid", "--", *command]

    def load(self, archive: Path) -> None:
        """Import the images of an archive, as `docker save` writes them."""
        plan = self._plan()
        command = NodeComponents(self.layout, plan).ctr("images", "import", "-")
        with archive.open("rb") as packed:
            done = subprocess.run(
                self.enter(*command), stdin=packed, capture_output=True, text=True, check=False
            )
        if done.returncode:
            raise NodeCommandError(command, done.returncode, done.stderr)

    def _start_first_process(self, found: Mapping[str, str]) -> None:
        if self.is_up:
            raise NodeInUseError(self.layout.name)
        self.layout.make()
        plan = NodePlan(choose_network(host.routed_networks()), found)
        save_plan(self.layout.plan, plan)
        host.create_cgroups(self.layout.cgroup)
        try:
            self._process.spawn()
            pid = self._only_child()
            self.layout.pid.write_text(f"{pid}\n", encoding="ascii")
            host.connect_veth(plan.block, pid, self.layout.owner)
        except BaseException:
            self._process.kill()
            host.remove_node(self.layout)
            raise

    def _only_child(self) -> int:
        """Wait for the process that `unshare` forks into the namespaces, and for its lock."""
        wait_until(
            lambda: self.is_up,
            self._process.name,
            within=FIRST_PROCESS_SECONDS,
            alive=[self._process],
        )
        unshare = self._process.pid
        children = Path(f"/proc/{unshare}/task/{unshare}/children").read_text(encoding="ascii")
        return int(children.split()[0])

    def _first_process(self) -> ManagedProcess:
        python = [sys.executable, "-I", "-S", init.__file__, str(self.layout.lock), "--"]
        resident = [sys.executable, "-m", "asyncjob_dev.node.daemon", str(self.layout.root)]
        return ManagedProcess(
            f"the node {self.layout.name}",
            ["unshare", *NAMESPACES, "--kill-child", "--fork", "--", *python, *resident],
            log_file=self.layout.log("node"),
            env=dict(self._environ),
            ready=self.layout.ready.exists,
            ready_within=READY_SECONDS,
            outlives_us=self._outlives_us,
        )

    @contextmanager
    def _exclusively(self, *, sweep: bool = True) -> Iterator[None]:
        """Keep others on the machine from starting nodes: they would take the same network."""
        self.layout.nodes.mkdir(mode=0o700, parents=True, exist_ok=True)
        with START_LOCK.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if sweep:
                host.remove_dead_nodes(self.layout.nodes)
            yield

    def _plan(self) -> NodePlan:
        plan = load_plan(self.layout.plan)
        if plan is None or not self.is_up:
            raise NodeNotUpError(self.layout.name)
        return plan

    def _pid(self) -> int:
        self._plan()
        return int(self.layout.pid.read_text(encoding="ascii"))

    def _end(self) -> bool:
        """End the first process, which ends after all others; returns whether it was there."""
        try:
            first = os.pidfd_open(self._pid())
        except (NodeNotUpError, FileNotFoundError, ProcessLookupError):
            return False
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(first, number)
            if select.select([first], [], [], STOP_SECONDS)[0]:
                break
        os.close(first)
        return True

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
