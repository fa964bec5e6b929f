"""A user's project, and the development server that runs in it, as a process of its own."""

import json
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from support.driven.jobs import until
from support.processes.commands import Commands
from support.processes.signals import as_in_a_terminal

HANDLERS = """
import asyncio
from pathlib import Path

from asyncjob import JobContext, WorkerApp

app = WorkerApp()


@app.handler("greet", timeout=60)
async def greet(job: JobContext, payload: dict[str, str]) -> str:
    print(f"greeting {payload['name']}")
    return f"Hello {payload['name']}"


@app.handler("hold", timeout=3600)
async def hold(job: JobContext, payload: dict[str, str]) -> list[object]:
    kept = job.last_checkpoint
    if kept is None:
        await job.checkpoint("kept")
    while not Path(payload["until"]).exists():
        await asyncio.sleep(0.1)
    return [kept, job.attempt]
"""

WITHIN = 300.0
"""Seconds after which something does not come any more."""


@dataclass(frozen=True)
class Project:
    """A folder with handlers, and the command line in it."""

    folder: Path
    commands: Commands

    @property
    def handlers(self) -> Path:
        return self.folder / "hello.py"

    @property
    def own(self) -> Path:
        return self.folder / ".asyncjob"

    def asyncjob(self, *arguments: str, code: int = 0) -> str:
        """Run the command line as the guide says, and return what it says."""
        with_cluster = replace(self.commands, kubeconfig=self.own / "kubeconfig")
        done = with_cluster.run(*arguments, timeout=WITHIN)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def submit(self, type_: str, name: str, *payload: str) -> None:
        self.asyncjob("submit", type_, *payload, f"--name={name}")

    def result(self, name: str) -> Any:
        """Return the result of a job once it has succeeded."""
        self.asyncjob("wait", name, f"--timeout={WITHIN:.0f}s")
        return json.loads(self.asyncjob("result", name))

    def greeting(self, name: str) -> Any:
        self.submit("greet", name, f"name={name}")
        return self.result(name)

    @contextmanager
    def server(self, *options: str, until_said: str = "Ctrl-C ends it.") -> Iterator["Server"]:
        """Run it in the foreground; it is up when this is entered."""
        log = self.folder.parent / f"{uuid.uuid4().hex}.log"
        with log.open("w") as output, as_in_a_terminal():
            process = self.commands.start("dev", *options, output=output)
        server = Server(process, log)
        with process:
            try:
                server.until_said(until_said)
                yield server
            finally:
                process.kill()


@dataclass(frozen=True)
class Server:
    """One that runs, and what it has printed."""

    process: subprocess.Popen[str]
    log: Path

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def until_said(self, text: str, times: int = 1) -> None:
        def found() -> bool:
            if self.said.count(text) < times and self.process.poll() is not None:
                raise AssertionError(f"it ended: {self.said}")
            return self.said.count(text) >= times

        until(found, WITHIN, text)

    def end(self, number: signal.Signals) -> int:
        """Send a signal, and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(WITHIN)


@contextmanager
def new_project(folder: Path) -> Iterator[Project]:
    """Make one; nothing that it has started is left at the end."""
    temporary, project = folder / "tmp", folder / "project"
    temporary.mkdir()
    project.mkdir()
    commands = Commands(uuid.uuid4().hex, temporary, module="asyncjob.cli", cwd=project)
    made = Project(project, commands)
    made.handlers.write_text(HANDLERS, encoding="utf-8")
    try:
        yield made
    finally:
        commands.kill_all()
