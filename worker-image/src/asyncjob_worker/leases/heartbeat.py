"""Renews the leases of running jobs, from a thread of its own.

Each heartbeat carries the handler's newest progress and checkpoint. It is a thread, because a
handler that blocks the event loop must not cost the other jobs their leases. Jobs are handed over
through a plain set, so that a job shorter than a tick costs this thread nothing. After an
unexpected error the thread starts its loop again; if it ends all the same, the worker notices
(`alive`, `liveness`). How late the thread runs is measured by its `HeartbeatLag`.
"""

import asyncio
import threading
from collections.abc import Callable, Container
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import structlog

from asyncjob.app.context import Stop
from asyncjob.errors import ApiError, InvalidError, TooLargeError
from asyncjob.free_json import size_of
from asyncjob.json_types import child, integer
from asyncjob.kube import KubeSession, load_access
from asyncjob.kube.pacing import ExponentialBackoff
from asyncjob.kube.session import METADATA_TYPE
from asyncjob_worker.clock import boottime, monotonic, now_text
from asyncjob_worker.leases.heartbeat_lag import HeartbeatLag
from asyncjob_worker.leases.held_job import FENCED_SECONDS, HandlerReport, HeldJob
from asyncjob_worker.leases.ownership import Ownership, check_ownership
from asyncjob_worker.leases.patches import renewal_patch
from asyncjob_worker.leases.stall_detector import (
    EventLoopStallDetector,
    LivenessCounter,
    main_thread_id,
)
from asyncjob_worker.metrics import Metrics

log = structlog.get_logger()

TICK_SECONDS = 0.25
"""How often the thread looks at the held jobs: a heartbeat is sent this much late at most."""

STALL_TICKS = 4
"""How many checks in a row may find that the event loop has not ticked before that is a stall:
after 1 second."""

MIN_PAUSE_SECONDS = 0.25
"""Shortest pause after a failed heartbeat, for leases so short that a thirtieth is less."""

MIN_TIMEOUT_SECONDS = 1.0
"""Shortest time that a heartbeat waits for its answer, unless a third of the lease is less."""


@dataclass(slots=True)
class HeartbeatCounts:
    """How many heartbeats were stored, and how many failed."""

    stored: int = 0
    failed: int = 0


class HeartbeatThread:
    """The heartbeat thread of one worker process.

    `report_interval` is the shortest time in seconds between two heartbeats that are sent only for
    a report. `loop_liveness` is ticked by the event loop; `blocking_job` returns the job whose
    handler has the event loop, if it is known.
    """

    def __init__(
        self,
        kubeconfig: str | None,
        namespace: str,
        report_interval: float,
        loop_liveness: LivenessCounter,
        *,
        metrics: Metrics,
        blocking_job: Callable[[], HeldJob | None],
    ) -> None:
        self._kubeconfig = kubeconfig
        self._namespace = namespace
        self._report_interval = report_interval
        self._jobs: set[HeldJob] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._main, name="heartbeat", daemon=True)
        self._metrics = metrics
        self._stall_detector = EventLoopStallDetector(
            loop_liveness,
            self._metrics,
            allowed_misses=STALL_TICKS,
            tick=TICK_SECONDS,
            loop_thread=main_thread_id,
            blocking_job=blocking_job,
        )
        self.liveness = LivenessCounter()
        self.lag = HeartbeatLag(TICK_SECONDS, monotonic)
        self.counts = HeartbeatCounts()

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, waiting up to 5 s; leases are no longer renewed."""
        self._stopping.set()
        if self.alive:
            self._thread.join(timeout=5.0)

    def add(self, held: HeldJob) -> None:
        """Renew the job's lease from now on."""
        self._jobs.add(held)

    def remove(self, held: HeldJob) -> None:
        """Stop renewing the job's lease."""
        self._jobs.discard(held)

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
            HeartbeatSender(session, self._jobs, self.counts) as renewals,
        ):
            while not self._stopping.is_set():
                self.liveness.tick()
                self.lag.tick()
                self._stall_detector.check(self._job_names)
                self._tick(renewals.renew)
                renewals.reap()
                await asyncio.sleep(TICK_SECONDS)

    def _tick(self, renew: Callable[[HeldJob], None]) -> None:
        now = boottime()
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
        return now > self.lag.safe_until(held)

    def _should_kill(self, held: HeldJob, now: float) -> bool:
        """Return whether a fenced handler has had its time to stop and is still there.

        The event loop kills it as well, unless it is blocked.
        """
        since = held.fenced_at
        return since is not None and held.can_be_killed and now > since + FENCED_SECONDS

    def _kill(self, held: HeldJob) -> None:
        if held.kill_handler():
            log.warning("fenced handler was killed by the heartbeat thread", job=held.job.name)

    def _is_due(self, held: HeldJob, now: float) -> bool:
        if held.stopped is Stop.FENCED:
            return False
        reports = held.unsaved_report() is not None and now >= held.sent_at + self._report_interval
        return now >= held.renewal_due_at or (reports and not held.writing_outcome)

    def _job_names(self) -> list[str]:
        return sorted(held.job.name for held in list(self._jobs))


class HeartbeatSender:
    """Sends heartbeats over one session; leaving the context cancels those under way.

    `renewing` are the jobs whose leases are still to be renewed.
    """

    def __init__(
        self, session: KubeSession, renewing: Container[HeldJob], counts: HeartbeatCounts
    ) -> None:
        self._session = session
        self._renewing = renewing
        self._counts = counts
        self._tasks: dict[HeldJob, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def renew(self, held: HeldJob) -> None:
        """Start to send a heartbeat, unless one of this claim is under way."""
        if held not in self._tasks:
            self._tasks[held] = asyncio.create_task(self.send(held))

    def reap(self) -> None:
        """Remove the finished heartbeats; raise the unexpected error of one, if there was any."""
        for held, task in list(self._tasks.items()):
            if task.done():
                del self._tasks[held]
                task.result()

    async def send(self, held: HeldJob) -> None:
        """Send one heartbeat and record its success, or find out why it has failed.

        Ends after a pause if it has failed, so that the next is not sent at once.
        """
        report, sent_at = held.unsaved_report(), boottime()
        body = renewal_patch(held, report, now_text())
        try:
            async with asyncio.timeout(_request_timeout(held, sent_at)):
                await self._session.json_patch(held.status_path, body, accept=METADATA_TYPE)
        except (ApiError, TimeoutError) as error:
            self._counts.failed += 1
            if isinstance(error, TimeoutError) or error.retryable:
                self._record_unconfirmed(held, sent_at, error)
            else:
                await self._on_refused(held, report, error)
            pause = held.policy.lease_duration_seconds / 30
            await asyncio.sleep(max(MIN_PAUSE_SECONDS, pause))
        else:
            self._record_success(held, report, sent_at)

    def _record_success(self, held: HeldJob, report: HandlerReport | None, sent_at: float) -> None:
        held.sent_at, held.unconfirmed_since = sent_at, None
        held.renewals += 1
        if report:
            held.stored_version = report.version
        self._counts.stored += 1

    def _record_unconfirmed(self, held: HeldJob, sent_at: float, error: Exception) -> None:
        log.warning("heartbeat failed", job=held.job.name, error=str(error) or "no answer")
        if held.unconfirmed_since is None:
            held.unconfirmed_since = sent_at

    async def _on_refused(
        self, held: HeldJob, report: HandlerReport | None, error: ApiError
    ) -> None:
        check = await check_ownership(self._session, held)
        if held not in self._renewing or held.writing_outcome:
            return  # the outcome was sent meanwhile; its writer checks the ownership itself
        if check.ownership in {Ownership.FENCED, Ownership.LEFT}:
            log.warning("fenced: the job is no longer ours", job=held.job.name)
            held.stop(Stop.FENCED)
            return
        known = integer(child(check.status, "lease"), "renewals")
        if check.ownership is Ownership.HELD and known != held.renewals:
            self._adopt_unconfirmed(held, known)
            return
        log.warning("heartbeat refused", job=held.job.name, error=str(error))
        if check.ownership is Ownership.HELD and report:
            self._drop_report(held, report, error)

    def _adopt_unconfirmed(self, held: HeldJob, known: int) -> None:
        """Record a heartbeat that was stored although its answer was lost."""
        held.renewals = known
        if held.unconfirmed_since is not None:
            held.sent_at, held.unconfirmed_since = held.unconfirmed_since, None

    def _drop_report(self, held: HeldJob, report: HandlerReport, error: ApiError) -> None:
        """Renew without this report from now on: it must not cost the job its lease."""
        if not isinstance(error, TooLargeError | InvalidError):
            return
        held.stored_version = max(held.stored_version, report.version)
        if report.checkpoint_version and isinstance(error, TooLargeError):
            size = size_of(report.checkpoint)
            held.stop_refused(
                f"the checkpoint has {size} bytes, and with it the job exceeds what the store "
                f"takes (by default 1572864 bytes in all): {error}"
            )


def _request_timeout(held: HeldJob, now: float) -> float:
    """Return how many seconds to wait for an answer and still have time for another try."""
    left = held.safe_until - now
    return min(held.policy.lease_duration_seconds / 3, max(MIN_TIMEOUT_SECONDS, left / 2))
