"""One supervised program: started, waited for until ready, stopped in good order.

Serves etcd and the API server as well as operators and gateways; worker processes have Pods and
are `asyncjob_dev.supervisor`'s business.
"""

import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from asyncjob_dev.children import Subprocess, spawn
from asyncjob_dev.files import tail
from asyncjob_dev.readiness import wait_until

ALWAYS_READY: Callable[[], bool] = lambda: True  # noqa: E731


class ManagedProcess:
    """A named process with a log file and a ready probe; a context manager.

    `env` is the whole environment (None: ours). `ready` is polled until it returns True. Times are
    in seconds. A stopped process can be started again. With `outlives_us` it does not end with
    this process, which then has to see to that.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        log_file: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        ready: Callable[[], bool] = ALWAYS_READY,
        ready_within: float = 30.0,
        grace: float = 10.0,
        outlives_us: bool = False,
    ) -> None:
        self.name = name
        self.argv = tuple(argv)
        self.log_file = log_file
        self._env = env
        self._cwd = cwd
        self.ready = ready
        self._ready_within = ready_within
        self._grace = grace
        self._outlives_us = outlives_us
        self._subprocess: Subprocess | None = None
        self._log_start = 0

    @property
    def pid(self) -> int | None:
        """The process id of the newest start."""
        return self._subprocess.pid if self._subprocess else None

    @property
    def returncode(self) -> int | None:
        """How it ended (negative: by which signal); None while it runs or before the start."""
        return self._subprocess.poll() if self._subprocess else None

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._subprocess is not None and self._subprocess.poll() is None

    def start(self) -> None:
        """Start and wait until ready; on failure nothing is left running."""
        self.spawn()
        try:
            self.wait_ready()
        except BaseException:
            self.kill()
            raise

    def spawn(self) -> None:
        """Start without waiting; does nothing when it runs."""
        if not self.running:
            self._log_start = self.log_file.stat().st_size if self.log_file.exists() else 0
            self._subprocess = spawn(
                self.argv,
                log_file=self.log_file,
                env=self._env,
                cwd=self._cwd,
                outlives_us=self._outlives_us,
            )

    def wait_ready(self) -> None:
        """Wait for the ready probe; raises `ProcessDiedError` or `NotReadyError`."""
        wait_until(self.ready, self.name, within=self._ready_within, alive=[self])

    def log_tail(self) -> str:
        """Return what it last wrote since its newest start."""
        return tail(self.log_file, start=self._log_start)

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the end; None when it was never started or `timeout` was too short."""
        return self._subprocess.wait(timeout) if self._subprocess else None

    def stop(self, grace: float | None = None) -> int | None:
        """SIGTERM, wait `grace` seconds, SIGKILL; with a grace of 0 SIGKILL at once."""
        patience = self._grace if grace is None else grace
        if patience > 0:
            self.resume()
            self.terminate()
            self.wait(patience)
        return self.kill()

    def terminate(self) -> None:
        """SIGTERM the process alone and do not wait."""
        if self._subprocess:
            self._subprocess.signal(signal.SIGTERM)

    def kill(self) -> int | None:
        """SIGKILL the process and its group, and wait for the end."""
        child = self._subprocess
        if child is None:
            return None
        child.signal_group(signal.SIGKILL)
        return child.wait()

    def pause(self) -> None:
        """Freeze it (SIGSTOP): it keeps its sockets and answers nobody."""
        self._signal_group(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen process go on (SIGCONT)."""
        self._signal_group(signal.SIGCONT)

    def _signal_group(self, number: signal.Signals) -> None:
        if self._subprocess:
            self._subprocess.signal_group(number)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.stop()
