"""The step `dev`: the development server as it is installed, without the clone.

A handler of the project page runs in a folder that has nothing else. The time is measured from the
start to the first job that has succeeded.
"""

import os
import re
import signal
import subprocess
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from asyncjob_dev.cache_folder import cache_dir
from asyncjob_dev.files import tail
from asyncjob_dev.process import wait_until
from asyncjob_dev.rehearsal.distributions import StepError, run
from asyncjob_dev.rehearsal.environments import (
    SUPPORTED,
    CleanEnvironment,
    find_python,
    new_environment,
)
from asyncjob_dev.rehearsal.installs import install_all
from asyncjob_dev.rehearsal.report import Check, failed, judged, not_tried, ok

PAGE: Final = Path("dev/README.md")
PROGRAMS: Final = Path("dist/controlplane")
BAR_SECONDS: Final = 20.0
QUIET: Final = 0.5
"""Load per processor up to which the bar counts: beyond it a time says nothing."""

MARK: Final = "ASYNCJOB_REHEARSAL_MARK"
WITHIN: Final = 300.0


def dev(root: Path) -> Iterator[Check]:
    """Install it, and run a handler, the demo, and Ctrl-C."""
    python = next(filter(None, (find_python(one, os.environ) for one in SUPPORTED)), None)
    if python is None:
        yield not_tried("asyncjob dev", f"none of Python {', '.join(SUPPORTED)} is here")
        return
    with TemporaryDirectory(prefix="dev-") as folder:
        environment = new_environment(Path(folder) / "environment", python)
        # As pip does it; uv leaves it to the first start.
        install_all(root, environment, "--compile-bytecode")
        environment.check()
        project = Project(environment, Path(folder) / "project", cache_dir(os.environ))
        project.make(handler((root / PAGE).read_text(encoding="utf-8")))
        yield from _first_job(project)
        yield from _demo(project)
        yield from _with_the_wheel(root, environment, Path(folder))


def handler(page: str) -> str:
    """Return the handler that the project page shows."""
    found = re.search(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    if found is None:
        raise StepError(f"{PAGE} shows no handler")
    return found[1]


@dataclass(frozen=True)
class Project:
    """A folder of a user's, and the command line of a clean environment in it."""

    environment: CleanEnvironment
    folder: Path
    cache: Path

    def make(self, code: str) -> None:
        """Write the handler, and nothing else."""
        self.folder.mkdir()
        (self.folder / "hello.py").write_text(code, encoding="utf-8")

    @property
    def variables(self) -> dict[str, str]:
        """The environment of its programs."""
        own = {"ASYNCJOB_CACHE": str(self.cache), "PYTHONDONTWRITEBYTECODE": "1"}
        return {**self.environment.variables, **own}

    def asyncjob(self, *arguments: str) -> str:
        """Run the command line as the guide of the server says."""
        kubeconfig = {"KUBECONFIG": str(self.folder / ".asyncjob/kubeconfig")}
        program = str(self.environment.program("asyncjob"))
        return run([program, *arguments], cwd=self.folder, env={**self.variables, **kubeconfig})

    @contextmanager
    def server(self, *options: str) -> Iterator["Server"]:
        """Start it; it is ended, if need be, and none of its processes is left."""
        mark = uuid.uuid4().hex
        log = self.folder.parent / f"{mark}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(self.environment.program("asyncjob")), "dev", *options],
                cwd=self.folder,
                env={**self.variables, MARK: mark},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            yield Server(process, log, mark)
        finally:
            process.kill()
            process.wait()

    def strangers(self) -> list[str]:
        """Return what is in the folder and was neither written by hand nor is `.asyncjob`."""
        return sorted({one.name for one in self.folder.iterdir()} - {"hello.py", ".asyncjob"})


@dataclass(frozen=True)
class Server:
    """One that runs."""

    process: subprocess.Popen[bytes]
    log: Path
    mark: str

    def until_said(self, text: str) -> None:
        """Wait until it has printed this; raises StepError if it ends before."""

        def said() -> bool:
            if text in self.log.read_text(encoding="utf-8"):
                return True
            if self.process.poll() is not None:
                raise StepError(f"asyncjob dev ended:\n{tail(self.log)}")
            return False

        wait_until(said, text, within=WITHIN)

    def end(self) -> list[str]:
        """Send Ctrl-C; return what is wrong with its end."""
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(WITHIN)
        left = processes_with({MARK: self.mark}).values()
        return [
            *([f"it ended with {code}"] if code else []),
            *(f"{one} still runs" for one in left),
        ]


def processes_with(variables: Mapping[str, str]) -> dict[int, str]:
    """Return the command lines of all processes that have these variables, by their ids."""
    wanted = {f"{name}={value}".encode() for name, value in variables.items()}
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted <= set((folder / "environ").read_bytes().split(b"\0")):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(folder.name)] = command.decode(errors="replace")
        except OSError:
            continue
    return found


def processor_seconds(pids: Iterable[int]) -> float:
    """Return what these, and those of their children that have ended, have worked."""
    ticks = 0
    for pid in pids:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        # After the name, which may have brackets: user and system time, own and children's.
        ticks += sum(int(field) for field in stat.rpartition(")")[2].split()[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _first_job(project: Project) -> Iterator[Check]:
    load = os.getloadavg()[0]
    began = time.monotonic()
    with project.server("hello:app") as server:
        server.until_said("Ctrl-C ends it.")
        project.asyncjob("submit", "greet", "name=world", "--name=first", "--wait")
        seconds = time.monotonic() - began
        worked = processor_seconds(processes_with({MARK: server.mark}))
        yield ok("a handler of one's own", project.asyncjob("result", "first").strip())
        yield bar(seconds, load, os.cpu_count() or 1)
        yield ok("processor time until then", f"{worked:.1f} s in all that runs")
        code = (project.folder / "hello.py").read_text(encoding="utf-8")
        (project.folder / "hello.py").write_text(code.replace("Hello", "Good day"))
        server.until_said("hello.py changed: starting the workers again")
        server.until_said("worker started")
        project.asyncjob("submit", "greet", "name=world", "--name=second", "--wait")
        seen = project.asyncjob("result", "second").strip()
        yield judged("changed code", [] if "Good day" in seen else [f"it says {seen}"], seen)
        yield judged("Ctrl-C", server.end(), "no process is left")
    yield judged("files", (f"{one} is left" for one in project.strangers()), "only .asyncjob")


def bar(seconds: float, load: float, processors: int) -> Check:
    """Judge the time from the start to the first job that has succeeded."""
    what = f"the first job within {BAR_SECONDS:g} s"
    seen = f"{seconds:.1f} s, begun at a load of {load:.1f} on {processors} processors"
    if seconds <= BAR_SECONDS:
        return ok(what, seen)
    return failed(what, seen) if load <= QUIET * processors else not_tried(what, f"busy: {seen}")


def _demo(project: Project) -> Iterator[Check]:
    said = project.asyncjob("dev", "--demo")
    done = [line.split()[1] for line in said.splitlines() if re.match(r"\([a-e]\) .* yes$", line)]
    problems = [] if "nothing is left running" in said else [said[-500:]]
    yield judged("asyncjob dev --demo", problems, f"{', '.join(done)} as they should be")


def _with_the_wheel(root: Path, environment: CleanEnvironment, folder: Path) -> Iterator[Check]:
    what = "programs of the wheel, with an empty cache"
    wheel = next((root / PROGRAMS).glob("*linux*.whl"), None)
    if wheel is None:
        yield not_tried(what, f"none is in {PROGRAMS}: make controlplane-wheel")
        return
    environment.install("--no-deps", str(wheel.absolute()))
    project = Project(environment, folder / "another", folder / "cache")
    project.make(handler((root / PAGE).read_text(encoding="utf-8")))
    with project.server("hello:app") as server:
        server.until_said("Ctrl-C ends it.")
        project.asyncjob("submit", "greet", "name=world", "--wait")
        used = {line.split()[0] for line in processes_with({MARK: server.mark}).values() if line}
        own = [one for one in used if one.endswith(("/etcd", "/kube-apiserver"))]
        foreign = [one for one in own if not Path(one).is_relative_to(environment.folder)]
        problems = [f"{one} is not the wheel's" for one in foreign] or ([] if own else ["none ran"])
        yield judged(what, [*problems, *server.end()], wheel.name.partition("-py3-")[0])
