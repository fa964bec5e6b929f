"""A development server: an environment in the foreground, whose workers follow their source.

One process owns everything. Ctrl-C ends the parts in order; should this process be killed, the
kernel ends them, and the next start goes on with the jobs that the folder has.
"""

import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from asyncjob_dev.binaries import default_resolver, resolve
from asyncjob_dev.environment import Environment, EnvironmentPaths, EnvironmentSettings
from asyncjob_dev.environment.background import short_path, wipe, with_ports
from asyncjob_dev.environment.daemon import clear_parts, current_state
from asyncjob_dev.environment.state import EnvironmentState, acquire_lock, save_state
from asyncjob_dev.errors import (
    EnvironmentInUseError,
    HandlersNotLoadedError,
    PortInUseError,
    ServerRunsError,
)
from asyncjob_dev.ports import is_free
from asyncjob_dev.process import ManagedProcess
from asyncjob_dev.server.app_check import job_types
from asyncjob_dev.server.folder import make_folder
from asyncjob_dev.server.source import changes
from asyncjob_dev.server.terminal import LogFollower, Terminal, guide
from asyncjob_dev.signals import unwind_on_signals
from asyncjob_dev.supervisor import DevWorker

GRACE_SECONDS = 5.0
"""How long a part may take to end: people wait for it, at each change of their code."""

LOOK_SECONDS = 1.0


def serve(folder: Path, project: Path, choices: Mapping[str, Any]) -> None:
    """Run everything until a signal comes.

    `choices` are those of the settings, and `reload` and `wipe`. Raises DevError where it cannot
    start, and KeyboardInterrupt where a signal came before it had; then nothing is left running.
    """
    chosen = dict(choices)
    reload, wiped = chosen.pop("reload"), chosen.pop("wipe")
    settings = EnvironmentSettings(**chosen, grace=GRACE_SECONDS)
    layout = EnvironmentPaths(folder)
    with unwind_on_signals(), _held(layout):
        # All that can be wrong with what was asked for, before any job is forgotten for it.
        check_ports(settings)
        types = job_types(settings.app, project)
        if wiped:
            wipe(layout)
        server = _Server(layout, with_ports(layout, settings), project)
        server.run(types, reload=reload)


def check_ports(settings: EnvironmentSettings) -> None:
    """Raise PortInUseError if a port that was asked for cannot be had."""
    wanted = (("--port", settings.gateway_port), ("--api-port", settings.api_port))
    for option, port in wanted:
        if port and not is_free(port):
            raise PortInUseError(port, option)


@contextmanager
def _held(layout: EnvironmentPaths) -> Iterator[None]:
    """Hold the folder; raises ServerRunsError where another does."""
    make_folder(layout.folder)
    try:
        lock = acquire_lock(layout.lock)
    except EnvironmentInUseError as error:
        raise ServerRunsError(layout.folder, error.pid) from error
    with lock:
        yield


class _Server:
    """One run."""

    def __init__(
        self, layout: EnvironmentPaths, settings: EnvironmentSettings, project: Path
    ) -> None:
        self._began = time.monotonic()
        self._layout = layout
        self._project = project
        self._terminal = Terminal()
        self._environment = Environment(layout, settings, self._say_step, project)
        self._stopping = threading.Event()

    def run(self, types: list[str], *, reload: bool) -> None:
        """Bring it up, and keep it until a signal comes; `types` are those of the app's jobs."""
        default_resolver().resolve_all()
        self._layout.make()
        logging.basicConfig(filename=self._layout.supervisor_log, level=logging.WARNING)
        clear_parts(self._layout)
        try:
            with self._environment:
                self._terminal.say(self._guide(types))
                with suppress(KeyboardInterrupt):
                    self._keep(reload=reload)
                self._terminal.say("\nstopping …")
        finally:
            clear_parts(self._layout)
        kept = short_path(self._layout.folder, self._project)
        self._terminal.say(f"stopped; jobs are kept in {kept}")

    def _say_step(self, step: str) -> None:
        self._terminal.say(f"{step} …")

    def _guide(self, types: list[str]) -> str:
        return guide(
            self._layout,
            self._environment.settings,
            self._project,
            job_types=types,
            seconds=time.monotonic() - self._began,
            has_kubectl=resolve("kubectl").source == "PATH",
        )

    def _keep(self, *, reload: bool) -> None:
        watching = threading.Thread(target=self._follow_source, name="reload", daemon=True)
        known: EnvironmentState | None = None
        with LogFollower(self._logs(), self._terminal):
            try:
                if reload:
                    watching.start()
                ends = Ends([*self._environment.services, *self._environment.workers])
                while True:
                    for line in (*restart_ended(self._environment.plane.processes), *ends.new()):
                        self._terminal.say(line)
                    if (now := current_state(self._environment)) != known:
                        known = now
                        save_state(self._layout.state, now)
                    time.sleep(LOOK_SECONDS)
            finally:
                self._stopping.set()

    def _logs(self) -> dict[str, Path]:
        workers = self._environment.workers
        return {worker.name: worker.process.log_file for worker in workers}

    def _follow_source(self) -> None:
        for files in changes(self._project, self._stopping):
            named = ", ".join(short_path(Path(file), self._project) for file in files[:3])
            try:
                job_types(self._environment.settings.app, self._project)
            except HandlersNotLoadedError as error:
                told = f"{named} changed, but {error}. The workers go on with the code they have."
                self._terminal.say(told)
                continue
            self._terminal.say(f"{named} changed: starting the workers again")
            restart(self._environment.workers)


def restart(workers: Sequence[DevWorker]) -> None:
    """Start all of them again, beside each other."""
    with ThreadPoolExecutor(len(workers)) as pool:
        list(pool.map(DevWorker.restart, workers))


def restart_ended(processes: Sequence[ManagedProcess]) -> Iterator[str]:
    """Start again what is not running; yield a sentence for each."""
    for process in processes:
        if not process.running:
            yield f"{process.name} ended with {process.returncode}: starting it again"
            process.spawn()


class Ends:
    """Tells of parts that ended unasked: each time at first, then now and then."""

    def __init__(self, parts: Sequence[DevWorker]) -> None:
        self._known = {part.name: part.unasked_ends for part in parts}
        self._parts = parts

    def new(self) -> Iterator[str]:
        """Yield a sentence for each end since the last time."""
        for part in self._parts:
            count = part.unasked_ends
            if count != self._known[part.name]:
                self._known[part.name] = count
                # A part that ends at each start ends once a second.
                if count & (count - 1) == 0:
                    times = f" ({count} times by now)" if count > 1 else ""
                    yield f"{part.name} ended{times} and is started again: {part.process.log_file}"
