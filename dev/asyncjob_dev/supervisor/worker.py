"""One worker process and its Pod: the kubelet's part.

A thread starts the process, waits for its end and starts it again. It never talks to the API
server, so a worker restarts while that is down; telling is the reporter's business.
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

from asyncjob_dev.api import Api, Object
from asyncjob_dev.errors import ApiStatusError, ApiUnavailableError, NotReadyError
from asyncjob_dev.process import ManagedProcess, wait_until
from asyncjob_dev.supervisor.objects import IMAGE, Container, container_id
from asyncjob_dev.supervisor.reporter import PodStatusReporter

log = logging.getLogger(__name__)

FINAL_REPORT_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class WorkerSpec:
    """A worker to run; times are in seconds.

    `env` comes on top of ours. `server` is where the process finds the API server, if not where we
    do. `restart` starts an ended process again in the same Pod, after
    `restart_delay`; otherwise the Pod becomes Succeeded or Failed. `token_seconds` is at least
    600, which the API server demands.
    """

    name: str
    argv: Sequence[str]
    service_account: str = "asyncjob-worker"
    env: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    server: str = ""
    restart: bool = False
    restart_delay: float = 1.0
    grace: float = 30.0
    token_seconds: int = 3600


@dataclass(frozen=True)
class PodRef:
    """A Pod object and a client that may do everything with it."""

    api: Api
    path: str
    uid: str

    def delete(self, *, force: bool) -> None:
        """Delete it unless it is gone; without `force` it stays, terminating, as on a node."""
        options: Object = {"preconditions": {"uid": self.uid}}
        if force:
            options["gracePeriodSeconds"] = 0
        try:
            self.api.delete(self.path, options)
        except ApiStatusError as error:
            if error.status not in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:
                raise


class DevWorker:
    """A worker process with a Pod of its own; made by `DevPods.start`.

    `before` is what ran in the Pod earlier.
    """

    def __init__(
        self,
        spec: WorkerSpec,
        pod: PodRef,
        process: ManagedProcess,
        reporter: PodStatusReporter,
        before: Container | None = None,
    ) -> None:
        self.spec = spec
        self.process = process
        self._pod = pod
        self._reporter = reporter
        self._reason = ""
        self.unasked_ends = 0
        """How often the process has ended by itself."""
        self._stopping = threading.Event()
        self._restarting = threading.Event()
        self._spawning = threading.Lock()
        process.spawn()
        now = datetime.now(UTC)
        if before:
            self._container = before.restart(self._container_id(before.restarts + 1), now)
        else:
            self._container = Container(IMAGE, self._container_id(0), now)
        self._restarts_before = self._container.restarts
        reporter.report(self._container)
        self._runner = threading.Thread(target=self._run, name=f"run {spec.name}", daemon=True)
        self._runner.start()

    @property
    def name(self) -> str:
        """The name of the Pod."""
        return self.spec.name

    @property
    def pod_uid(self) -> str:
        """The uid of the Pod."""
        return self._pod.uid

    @property
    def restarts(self) -> int:
        """How often the process was started again by this object."""
        return self._container.restarts - self._restarts_before

    def pod(self) -> Object:
        """Return the Pod as the API server has it; `ApiStatusError` 404 once it is deleted."""
        return self._pod.api.get(self._pod.path)

    def wait_published(self, within: float = 10.0) -> None:
        """Wait until the API server knows how the process fares now."""
        if not self._reporter.wait_published(within):
            raise NotReadyError(f"the status of pod {self.name}", within, None, "")

    def wait_ended(self, within: float) -> None:
        """Wait until the process has ended for good, which with `restart` it never does."""
        self._runner.join(within)
        if self._runner.is_alive():
            raise NotReadyError(f"the end of {self.name}", within, None, "")

    def await_restart(self, count: int, within: float) -> None:
        """Wait until the process was started again `count` times in all."""
        wait_until(lambda: self.restarts >= count, f"restart {count} of {self.name}", within=within)

    def renew_token(self) -> None:
        """Put a new token into the token file now."""
        self._reporter.renew_token()

    def kill(self, reason: str = "") -> None:
        """SIGKILL the process with all it started; `reason` may say `OOMKilled`."""
        self._reason = reason
        self.process.kill()

    def delete_pod_object(self, *, force: bool = True) -> None:
        """Delete the Pod object and leave the process alone."""
        self._pod.delete(force=force)

    def restart(self) -> None:
        """Have the process end, within its grace, and start it again at once in the same Pod.

        Only with `restart`; returns when it has ended.
        """
        with self._spawning:
            self._restarting.set()
            self.process.stop(self.spec.grace)

    def terminate(self) -> None:
        """SIGTERM the process for good: it is not started again."""
        with self._spawning:
            self._stopping.set()
        self.process.terminate()

    def stop(self, grace: float | None = None) -> None:
        """SIGTERM, wait, SIGKILL; report the end, then delete the Pod object.

        An API server that is down does not keep the process alive; the Pod object then stays.
        """
        self.terminate()
        self.process.stop(self.spec.grace if grace is None else grace)
        self._runner.join()
        self._reporter.wait_published(FINAL_REPORT_SECONDS)
        self._reporter.close()
        try:
            self._pod.delete(force=True)
        except ApiUnavailableError as error:
            log.warning("pod object stays behind", extra={"pod": self.name, "error": str(error)})

    def _run(self) -> None:
        while True:
            returncode = self.process.wait()
            assert returncode is not None
            self._report(self._container.end(returncode, datetime.now(UTC), self._reason))
            self._reason = ""
            if not self.spec.restart or self._stopping.wait(self._delay()):
                return
            with self._spawning:
                if self._stopping.is_set():
                    return
                self.process.spawn()
            restarted = self._container_id(self._container.restarts + 1)
            self._report(self._container.restart(restarted, datetime.now(UTC)))

    def _delay(self) -> float:
        if self._restarting.is_set():
            self._restarting.clear()
            return 0.0
        self.unasked_ends += not self._stopping.is_set()
        return self.spec.restart_delay

    def _report(self, container: Container) -> None:
        self._container = container
        self._reporter.report(container)

    def _container_id(self, restarts: int) -> str:
        return container_id(self.process.pid or 0, restarts)
