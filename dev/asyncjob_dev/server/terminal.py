"""What a development server shows: what happens, how to use it, and what the workers write."""

import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Self, TextIO

from asyncjob_dev.environment.background import short_path
from asyncjob_dev.environment.settings import EnvironmentPaths, EnvironmentSettings

LOOK_SECONDS = 0.2
READ_BYTES = 1 << 20


class Terminal:
    """Prints lines, from any thread, none into another."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream: TextIO | None = stream or sys.stdout
        self._lock = threading.Lock()

    def say(self, text: str) -> None:
        """Print it; a terminal that has gone away keeps nothing from going on."""
        with self._lock:
            if self._stream is None:
                return
            try:
                self._stream.write(f"{text}\n")
                self._stream.flush()
            except (OSError, ValueError):
                self._stream = None


class LogFollower:
    """A context manager that shows what is written to logs from now on, a prefix before each line.

    `logs` are the files by the name that is shown; they need not exist yet.
    """

    def __init__(self, logs: Mapping[str, Path], terminal: Terminal) -> None:
        self._ends = {path: _size(path) for path in logs.values()}
        self._logs = logs
        self._halves = dict.fromkeys(logs, b"")
        self._width = max(map(len, logs), default=0)
        self._terminal = terminal
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="follow logs", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._look()

    def _follow(self) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        for name, path in self._logs.items():
            try:
                with path.open("rb") as log:
                    log.seek(self._ends[path])
                    self._show(name, path, log)
            except OSError:
                continue

    def _show(self, name: str, path: Path, log: BinaryIO) -> None:
        while new := log.read(READ_BYTES):
            self._ends[path] += len(new)
            *lines, self._halves[name] = (self._halves[name] + new).split(b"\n")
            for line in lines:
                text = line.decode("utf-8", errors="replace").rstrip("\r")
                self._terminal.say(f"{name:<{self._width}} | {text}")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


GUIDE = """
Ready after {seconds:.0f} s.

  Dashboard    {gateway}/dashboard/
  REST API     {gateway}/api/v1/jobs
  Job types    {types}
  Logs         {logs}/

In another terminal (a payload follows the type, as FIELD=VALUE):

  export KUBECONFIG={kubeconfig}{path}
  asyncjob submit {example} --wait
  kubectl get asyncjobs --watch

Ctrl-C ends it. Jobs are kept in {folder}; --wipe forgets them.
"""
MAX_TYPES = 6


def guide(
    layout: EnvironmentPaths,
    settings: EnvironmentSettings,
    here: Path,
    *,
    job_types: list[str],
    seconds: float,
    has_kubectl: bool,
) -> str:
    """Return how to use what runs; paths as seen from the folder `here`."""
    more = ", …" if len(job_types) > MAX_TYPES else ""
    path = "" if has_kubectl else f" PATH={short_path(layout.bin, here, '$PWD/')}:$PATH"
    return GUIDE.format(
        seconds=seconds,
        gateway=f"http://127.0.0.1:{settings.gateway_port}",
        types=", ".join(job_types[:MAX_TYPES]) + more,
        logs=short_path(layout.logs, here),
        kubeconfig=short_path(layout.kubeconfig, here, "$PWD/"),
        path=path,
        example=job_types[0] if job_types else "TYPE",
        folder=short_path(layout.folder, here),
    )
