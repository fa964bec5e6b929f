"""Renews the leases of running jobs from a thread of its own.

A handler that blocks the event loop must not cost its neighbours their leases. Progress and
checkpoints ride along. Jobs are handed over through a plain dict, so that a job shorter than a tick
costs this thread nothing.
"""

import asyncio
import threading
from collections.abc import Callable

import structlog

from asyncjob.errors import ApiError
from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession, load_access
from asyncjob.lifecycle.move import json_patch
from asyncjob_worker.clock import lease_seconds, now_text
from asyncjob_worker.held import Draft, HeldJob, Stop
from asyncjob_worker.reporter import Standing, standing

log = structlog.get_logger()

TICK_SECONDS = 0.25
SAFETY_SECONDS = 1.0
"""A handler is stopped so long before its lease can have ended."""


def renewal_body(held: HeldJob, draft: Draft | None, now: str) -> list[JsonObject]:
    """Return the JSON Patch of a heartbeat, with the handler's newest report if there is one."""
    reports = json_patch(draft.fields() if draft else {}, held.status)
    return [
        *held.fence(),
        {"op": "add", "path": "/status/lease/renewals", "value": held.renewals + 1},
        {"op": "add", "path": "/status/lease/renewTime", "value": now},
        {"op": "add", "path": "/status/lastUpdateTime", "value": now},
        *reports,
    ]


class Keeper:
    """The heartbeat thread of one worker process."""

    def __init__(self, kubeconfig: str | None, namespace: str, report_interval: float) -> None:
        self._kubeconfig = kubeconfig
        self._namespace = namespace
        self._report_interval = report_interval
        self._held: dict[str, HeldJob] = {}
        self._busy: set[str] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._main, name="heartbeat", daemon=True)
        self.renewals = 0

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; leases are no longer renewed."""
        self._stopping.set()
        self._thread.join(timeout=5.0)

    def keep(self, held: HeldJob) -> None:
        """Renew the job's lease from now on."""
        self._held[held.job.uid] = held

    def let_go(self, held: HeldJob) -> None:
        """Renew it no longer."""
        self._held.pop(held.job.uid, None)

    def _main(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        access = await load_access(self._kubeconfig, self._namespace)
        async with (
            KubeSession(access, field_manager="asyncjob-worker") as session,
            asyncio.TaskGroup() as group,
        ):
            while not self._stopping.is_set():
                self._tick(lambda held: group.create_task(self._renew(session, held)))
                await asyncio.sleep(TICK_SECONDS)

    def _tick(self, renew: Callable[[HeldJob], object]) -> None:
        now = lease_seconds()
        for held in list(self._held.values()):
            if held.stopped is not Stop.FENCED and now > held.ends_at - SAFETY_SECONDS:
                log.error("lease lost: no heartbeat got through in time", job=held.job.name)
                held.stop(Stop.FENCED)
            elif held.job.uid not in self._busy and self._is_due(held, now):
                self._busy.add(held.job.uid)
                renew(held)

    def _is_due(self, held: HeldJob, now: float) -> bool:
        if held.stopped is Stop.FENCED:
            return False
        reports = held.unsaved() is not None and now >= held.sent_at + self._report_interval
        return reports or now >= held.renew_at

    async def _renew(self, session: KubeSession, held: HeldJob) -> None:
        draft, sent_at = held.unsaved(), lease_seconds()
        try:
            await session.json_patch(held.status_path, renewal_body(held, draft, now_text()))
        except ApiError as error:
            await self._after_error(session, held, error)
        else:
            self._note_success(held, draft, sent_at)
        finally:
            self._busy.discard(held.job.uid)

    def _note_success(self, held: HeldJob, draft: Draft | None, sent_at: float) -> None:
        held.sent_at = sent_at
        held.renewals += 1
        self.renewals += 1
        if draft:
            held.saved_version = draft.version

    async def _after_error(self, session: KubeSession, held: HeldJob, error: ApiError) -> None:
        if held.job.uid not in self._held:
            return
        found = await standing(session, held)
        if held.job.uid in self._held and found in {Standing.FENCED, Standing.DONE}:
            log.warning("fenced: the job is no longer ours", job=held.job.name)
            held.stop(Stop.FENCED)
        elif held.job.uid in self._held:
            log.warning("heartbeat failed", job=held.job.name, error=str(error))
            await asyncio.sleep(TICK_SECONDS)
