"""A worker or operator process that tells how it fares."""

from collections.abc import Callable
from typing import Final
from urllib.error import HTTPError
from urllib.request import urlopen

from asyncjob_bench.errors import BenchError
from asyncjob_bench.ground import procfs
from asyncjob_bench.reckoning.exposition import Scrape
from asyncjob_dev.readiness import wait_until
from asyncjob_dev.supervisor import DevWorker

READY_SECONDS: Final = 300.0
REQUEST_SECONDS: Final = 30.0
LEADING_METRIC: Final = "asyncjob_operator_leading"


class ManagedWorker:
    """One such process and where its health and metrics are."""

    def __init__(self, worker: DevWorker, health_port: int, metrics_port: int) -> None:
        self.worker = worker
        self._health, self._metrics = health_port, metrics_port

    @property
    def pid(self) -> int:
        """The process id; raises BenchError once it has ended."""
        if not self.worker.process.running or (pid := self.worker.process.pid) is None:
            log = self.worker.process.log_tail()
            raise BenchError(f"{self.worker.name} has ended, and its log with:\n{log}")
        return pid

    def wait_ready(self) -> "ManagedWorker":
        """Wait until it works."""
        return self._wait_until(lambda: self._request(self._health, "/readyz")[0] == 200)

    def wait_leading(self) -> "ManagedWorker":
        """Wait until this operator may act."""
        return self._wait_until(lambda: self.metrics().total(LEADING_METRIC) == 1)

    def metrics(self) -> Scrape:
        """Return its metrics; none while it cannot be asked."""
        return Scrape.of(self._request(self._metrics, "/metrics")[1])

    @property
    def resident_mib(self) -> float:
        """What it occupies now."""
        return procfs.resident_mib(self.pid)

    @property
    def peak_mib(self) -> float:
        """The most it has occupied."""
        return procfs.peak_mib(self.pid)

    def _wait_until(self, ready: Callable[[], bool]) -> "ManagedWorker":
        process = self.worker.process
        wait_until(ready, self.worker.name, within=READY_SECONDS, alive=[process])
        return self

    def _request(self, port: int, path: str) -> tuple[int, str]:
        try:
            with urlopen(f"http://127.0.0.1:{port}{path}", timeout=REQUEST_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, ""
        except OSError:
            return 0, ""
