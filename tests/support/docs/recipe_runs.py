"""The recipes as a reader follows them: a shell, and the workers that `make up` would start."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Self

from asyncjob_dev.api import write_kubeconfig
from asyncjob_dev.binaries import resolve
from asyncjob_dev.ports import free_ports
from asyncjob_dev.supervisor import DevWorker
from support.docs.recipe_page import FOLDER, Step, missing_lines, steps
from support.processes.workers import ROOT, WorkerNamespace

END = "-- end of command:"


class Shell:
    """A shell of a reader: in that folder, on that namespace, with the page's ports made free."""

    def __init__(self, ns: WorkerNamespace, ports: dict[str, str]) -> None:
        self._names = {**ports, "default:": f"{ns.namespace}:"}
        kubeconfig = ns.folder / "kubeconfig"
        plane = ns.plane
        user = {"token": plane.admin_token}
        write_kubeconfig(
            kubeconfig, url=plane.url, ca_file=plane.ca_file, user=user, namespace=ns.namespace
        )
        programs = [resolve("kubectl").path.parent, Path(sys.executable).parent]
        path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "PATH": path}
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ns.folder,
            env=environment,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End what was started in the background as well."""
        assert self._bash.stdin
        self._bash.stdin.write("kill $(jobs -p) 2>/dev/null; wait\nexit\n")
        self._bash.stdin.close()
        self._bash.wait(20)
        assert self._bash.stdout
        self._bash.stdout.close()

    def run(self, command: str) -> tuple[int, str]:
        """Run it, and return its exit code and what it printed."""
        for name, value in self._names.items():
            command = command.replace(name, value)
        if command.endswith(" &"):
            command = f"{command.removesuffix(' &')} >background.log 2>&1 &"
        assert self._bash.stdin
        assert self._bash.stdout
        self._bash.stdin.write(f"{command}\nended=$?; echo; echo '{END}' $ended\n")
        self._bash.stdin.flush()
        printed: list[str] = []
        for line in self._bash.stdout:
            if line.startswith(END):
                return int(line.removeprefix(END)), "".join(printed)
            printed.append(line)
        raise AssertionError(f"the shell ended: {''.join(printed)}")

    def follow(self, step: Step) -> None:
        """Run a step of the page, and compare what it prints with what the page says."""
        code, printed = self.run(step.command)
        assert (code != 0) == step.is_refused, f"{step.command} ended with {code}: {printed}"
        assert missing_lines(step.printed, printed) == [], f"{step.command}: {printed}"


class Recipe:
    """A page, and the workers that its `make up` starts."""

    def __init__(self, page: str, ns: WorkerNamespace) -> None:
        self.ns = ns
        self._steps = steps(FOLDER / page)
        self._options = next(step.options() for step in self._steps if step.starts_environment)
        self._ports = dict(zip(("8000", "8090"), map(str, free_ports(2)), strict=True))

    def start(self, queue: str = "default", name: str = "", **env: str) -> DevWorker:
        """Start a worker of a queue, as the page says."""
        assert queue in self._options.get("QUEUES", "default").split(",")
        app = self._options.get("APP", "examples.handlers:app")
        api = f"http://127.0.0.1:{self._ports['8000']}"
        env = {"PYTHONPATH": str(ROOT), "EXAMPLE_API": api, **env}
        options = (f"--queue={queue}", "--concurrency=4")
        folder = self.ns.folder
        return self.ns.start_worker(name or queue, *options, app=app, env=env, cwd=folder)

    def start_all(self) -> dict[str, DevWorker]:
        """Start a worker of each queue."""
        queues = self._options.get("QUEUES", "default").split(",")
        started = {queue: self.start(queue) for queue in queues}
        for worker in started.values():
            self.ns.until_log(worker, "worker started")
        return started

    def follow(self) -> None:
        """Do what the page says, from beginning to end."""
        with Shell(self.ns, self._ports) as shell:
            for step in self._steps:
                if not step.is_setup:
                    shell.follow(step)

    def shell(self) -> Shell:
        """Open a shell like the reader's."""
        return Shell(self.ns, self._ports)
