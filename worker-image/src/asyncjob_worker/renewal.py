"""Heartbeats on their way: one at a time per job, each with the handler's newest report."""

import asyncio
from types import TracebackType
from typing import Protocol, Self

import structlog

from asyncjob.app.stop import Stop
from asyncjob.errors import ApiError, InvalidError, TooLargeError
from asyncjob.free_json import size_of
from asyncjob.json_types import child, integer
from asyncjob.kube import KubeSession
from asyncjob_worker.bodies import renewal_patch
from asyncjob_worker.clock import lease_seconds, now_text
from asyncjob_worker.held import HandlerReport, HeldJob
from asyncjob_worker.standing import Ownership, check_ownership

log = structlog.get_logger()

MIN_PAUSE_SECONDS = 0.25
MIN_TIMEOUT_SECONDS = 1.0


class HeartbeatRegistry(Protocol):
    """Knows which jobs are still to be renewed."""

    def contains(self, held: HeldJob) -> bool:
        """Return whether the job's lease is still to be renewed."""

    def count_renewal(self) -> None:
        """Count a successful renewal."""

    def count_failure(self) -> None:
        """Count one that failed."""


class HeartbeatSender:
    """The heartbeats under way over one session; leaving the context cancels them."""

    def __init__(self, session: KubeSession, registry: HeartbeatRegistry) -> None:
        self._session = session
        self._registry = registry
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
        """Send a heartbeat, unless one of this claim is on its way."""
        if held not in self._tasks:
            self._tasks[held] = asyncio.create_task(self.send(held))

    def reap(self) -> None:
        """Forget those that are through; raises what one of them has raised unexpectedly."""
        for held, task in list(self._tasks.items()):
            if task.done():
                del self._tasks[held]
                task.result()

    async def send(self, held: HeldJob) -> None:
        """Send one heartbeat and draw the conclusions."""
        draft, sent_at = held.unsaved_report(), lease_seconds()
        body = renewal_patch(held, draft, now_text())
        try:
            async with asyncio.timeout(_request_timeout(held, sent_at)):
                await self._session.json_patch(held.status_path, body)
        except (ApiError, TimeoutError) as error:
            self._registry.count_failure()
            if isinstance(error, TimeoutError) or error.retryable:
                self._record_unconfirmed(held, sent_at, error)
            else:
                await self._on_refused(held, draft, error)
            pause = held.policy.lease_duration_seconds / 30
            await asyncio.sleep(max(MIN_PAUSE_SECONDS, pause))
        else:
            self._record_success(held, draft, sent_at)

    def _record_success(self, held: HeldJob, report: HandlerReport | None, sent_at: float) -> None:
        held.sent_at, held.unconfirmed_since = sent_at, None
        held.renewals += 1
        if report:
            held.stored_version = report.version
        self._registry.count_renewal()

    def _record_unconfirmed(self, held: HeldJob, sent_at: float, error: Exception) -> None:
        log.warning("heartbeat failed", job=held.job.name, error=str(error) or "no answer")
        if held.unconfirmed_since is None:
            held.unconfirmed_since = sent_at

    async def _on_refused(
        self, held: HeldJob, report: HandlerReport | None, error: ApiError
    ) -> None:
        look = await check_ownership(self._session, held)
        if not self._registry.contains(held) or held.writing_outcome:
            return  # the outcome went out meanwhile, and its writer judges for itself
        if look.ownership in {Ownership.FENCED, Ownership.LEFT}:
            log.warning("fenced: the job is no longer ours", job=held.job.name)
            held.stop(Stop.FENCED)
            return
        known = integer(child(look.status, "lease"), "renewals")
        if look.ownership is Ownership.HELD and known != held.renewals:
            self._adopt_unconfirmed(held, known)
            return
        log.warning("heartbeat refused", job=held.job.name, error=str(error))
        if look.ownership is Ownership.HELD and report:
            self._drop_report(held, report, error)

    def _adopt_unconfirmed(self, held: HeldJob, known: int) -> None:
        """Take note of a heartbeat that took effect without an answer."""
        held.renewals = known
        if held.unconfirmed_since is not None:
            held.sent_at, held.unconfirmed_since = held.unconfirmed_since, None

    def _drop_report(self, held: HeldJob, report: HandlerReport, error: ApiError) -> None:
        """Renew without the report from now on: it must not cost the job its lease."""
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
    """Return how long to wait for an answer, so that there is time for another try."""
    left = held.safe_until - now
    return min(held.policy.lease_duration_seconds / 3, max(MIN_TIMEOUT_SECONDS, left / 2))
