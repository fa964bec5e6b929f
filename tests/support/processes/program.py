"""A program of ours under test: started, stopped, killed, and its log shown with a failure."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self


class ProgramProcess:
    """A program as a process; a context manager that stops it.

    Of this process's environment it has what is not named `ASYNCJOB_…`, and `environment` besides.
    """

    def __init__(
        self, argv: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._argv = list(argv)
        self.log = log
        self._environment = dict(environment or {})
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start it, or start it again."""
        kept = {name: text for name, text in os.environ.items() if "ASYNCJOB_" not in name}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._argv, stderr=log, env={**kept, **self._environment}
            )
        return self

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)  # a test may have frozen it
            self.stop()
        if error is not None:
            print(self.logs())  # noqa: T201  # shown with the failure

    def stop(self, within: float = 10.0) -> int:
        """SIGTERM and return the exit code."""
        assert self.process
        self.process.terminate()
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def kill(self) -> None:
        """SIGKILL."""
        assert self.process
        self.process.kill()
        self.process.wait()

    def logs(self) -> str:
        """Return what it has logged."""
        return self.log.read_text()
