"""Renews the leases of running jobs from a thread of its own.

A handler that blocks the event loop must not cost its neighbours their leases. Jobs are handed over
through a plain set, so that a job shorter than a tick costs this thread nothing. Whatever happens
in the thread, it starts again; should it end all the same, the worker notices (`alive`,
`liveness`).
"""

import asyncio
import threading
from collections.abc import Callable

import structlog

from asyncjob.app.stop import Stop
from asyncjob.kube import KubeSession, load_access
from asyncjob.kube.backoff import ExponentialBackoff
from asyncjob_worker.clock import awake_seconds, lease_seconds
from asyncjob_worker.held import FENCED_SECONDS, HeldJob
from asyncjob_worker.lateness import Lateness
from asyncjob_worker.metrics import Metrics
from asyncjob_worker.pulse import EventLoopStallDetector, LivenessCounter, main_thread_id
from asyncjob_worker.renewal import HeartbeatSender

log = structlog.get_logger()

TICK_SECONDS = 0.25
STALL_TICKS = 4


class HeartbeatThread:
    """The heartbeat thread of one worker process. `loop_liveness` beats in the event loop."""

    def __init__(
        self,
        kubeconfig: str | None,
        namespace: str,
        report_interval: float,
        loop_liveness: LivenessCounter,
        metrics: Metrics | None = None,
        *,
        blocking_job: Callable[[], HeldJob | None] = lambda: None,
    ) -> None:
        self._kubeconfig = kubeconfig
        self._namespace = namespace
        self._report_interval = report_interval
        self._jobs: set[HeldJob] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._main, name="heartbeat", daemon=True)
        self._metrics = metrics or Metrics()
        self._stall_detector = EventLoopStallDetector(
            loop_liveness,
            self._metrics,
            allowed_misses=STALL_TICKS,
            tick=TICK_SECONDS,
            loop_thread=main_thread_id,
            blocking_job=blocking_job,
        )
        self.liveness = LivenessCounter()
        self.lateness = Lateness(TICK_SECONDS, awake_seconds)
        self.renewals = 0
        self.renewal_failures = 0

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; leases are no longer renewed."""
        self._stopping.set()
        if self.alive:
            self._thread.join(timeout=5.0)

    def add(self, held: HeldJob) -> None:
        """Renew the job's lease from now on."""
        self._jobs.add(held)

    def remove(self, held: HeldJob) -> None:
        """Renew it no longer."""
        self._jobs.discard(held)

    def contains(self, held: HeldJob) -> bool:
        """Return whether the job's lease is still to be renewed."""
        return held in self._jobs

    def count_renewal(self) -> None:
        """Count a successful renewal."""
        self.renewals += 1

    def count_failure(self) -> None:
        """Count one that failed."""
        self.renewal_failures += 1

    def _main(self) -> None:
        backoff = ExponentialBackoff(initial=0.5, cap=5.0)
        while not self._stopping.is_set():
            try:
                asyncio.run(self._run())
            except Exception:  # the supervisor of this thread: leases depend on it
                log.exception("heartbeat thread failed and starts again")
                self._stopping.wait(backoff.next_delay())

    async def _run(self) -> None:
        access = await load_access(self._kubeconfig, self._namespace)
        async with (
            KubeSession(
                access, field_manager="asyncjob-worker", observer=self._metrics.request
            ) as session,
            HeartbeatSender(session, self) as renewals,
        ):
            while not self._stopping.is_set():
                self.liveness.tick()
                self.lateness.tick()
                self._stall_detector.check(self._job_names)
                self._tick(renewals.renew)
                renewals.reap()
                await asyncio.sleep(TICK_SECONDS)

    def _tick(self, renew: Callable[[HeldJob], None]) -> None:
        now = lease_seconds()
        for held in list(self._jobs):
            if self._is_lost(held, now):
                log.error("lease lost: no heartbeat got through in time", job=held.job.name)
                held.stop(Stop.FENCED)
            elif self._should_kill(held, now):
                self._kill(held)
            elif self._is_due(held, now):
                renew(held)

    def _is_lost(self, held: HeldJob, now: float) -> bool:
        if held.writing_outcome or held.stopped is Stop.FENCED:
            return False
        return now > self.lateness.safe_until(held)

    def _should_kill(self, held: HeldJob, now: float) -> bool:
        """Return whether a fenced handler has had its time; the event loop may be blocked."""
        since = held.fenced_at
        return since is not None and held.on_fenced is not None and now > since + FENCED_SECONDS

    def _kill(self, held: HeldJob) -> None:
        kill, held.on_fenced = held.on_fenced, None
        if kill is not None:
            log.warning("fenced handler is killed by the heartbeat thread", job=held.job.name)
            kill()

    def _is_due(self, held: HeldJob, now: float) -> bool:
        if held.stopped is Stop.FENCED:
            return False
        reports = held.unsaved_report() is not None and now >= held.sent_at + self._report_interval
        return now >= held.renewal_due_at or (reports and not held.writing_outcome)

    def _job_names(self) -> list[str]:
        return sorted(held.job.name for held in list(self._jobs))
