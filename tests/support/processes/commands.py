"""Runs commands of this project's own tools, and finds every process that they started."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parents[3]
MARK = "ASYNCJOB_TEST_MARK"
HANGS = 300.0
"""Seconds after which a command hangs. It takes a tenth of them on a machine of its own."""


@dataclass(frozen=True)
class Commands:
    """A program, marked by a variable that all its descendants inherit."""

    mark: str
    temporary: Path
    module: str = "asyncjob_dev"
    cwd: Path = ROOT
    kubeconfig: Path = Path(os.devnull)

    @property
    def environment(self) -> Mapping[str, str]:
        own = {MARK: self.mark, "TMPDIR": str(self.temporary), "KUBECONFIG": str(self.kubeconfig)}
        return {**os.environ, **own}

    def run(self, *arguments: str, timeout: float = HANGS) -> subprocess.CompletedProcess[str]:
        with self.start(*arguments) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def start(
        self, *arguments: str, output: TextIO | int = subprocess.PIPE
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", self.module, *arguments],
            cwd=self.cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE if output is subprocess.PIPE else subprocess.STDOUT,
            text=True,
        )

    def running(self) -> list[str]:
        """Return the command lines of all descendants that are still there."""
        return [command for _, command in self._descendants()]

    def await_none_running(self, within: float = 10.0) -> None:
        deadline = time.monotonic() + within
        while left := self.running():
            assert time.monotonic() < deadline, left
            time.sleep(0.05)

    def kill_all(self) -> None:
        for pid, _ in self._descendants():
            os.kill(pid, 9)

    def _descendants(self) -> Iterator[tuple[int, str]]:
        wanted = f"{MARK}={self.mark}".encode()
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit() and wanted in _read(folder / "environ").split(b"\0"):
                command = _read(folder / "cmdline").replace(b"\0", b" ").decode(errors="replace")
                yield int(folder.name), command


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
