"""Leader election through a coordination Lease: one operator acts, the others stand by."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog

from asyncjob.errors import ApiError, ConflictError, ForbiddenError, ObjectNotFoundError
from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob_operator.core.leader_election import (
    ElectionCandidate,
    ElectionStep,
    LeaderElectionRecord,
    election_lease_body,
    read_election_record,
)
from asyncjob_operator.core.permissions import election
from asyncjob_operator.kube.clock import micro_time
from asyncjob_operator.kube.preflight import check_permissions
from asyncjob_operator.kube.version_times import VersionTimes
from asyncjob_operator.telemetry.logs import LogThrottle

log = structlog.get_logger()

LEASE_DURATION: Final = 10.0
"""Seconds; Kubernetes' own components have 15, but jobs wait while nobody leads."""

RENEW_INTERVAL: Final = 2.0
"""One renewal may time out, and the next is sent before the Lease is free."""

RETRY_INTERVAL: Final = 1.0
"""Seconds between two looks of a candidate, which are lost when the leader hands over."""

REQUEST_TIMEOUT: Final = 3.0
"""Seconds for one step; with `RENEW_INTERVAL` before and behind it, it fits into the Lease."""


class LeaderElector:
    """Holds or seeks the Lease; has a session of its own, which no other request can fill up."""

    def __init__(
        self,
        session: KubeSession,
        namespace: str,
        name: str,
        identity: str,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._session = session
        self.version_times = VersionTimes()
        """Kept in the Lease. Who reads that, a leader too, knows no more than it says.

        A Lease that is not as its leader left it may be from a backup, as all versions then are.
        """

        self._wakes_from_arrays = True
        self._namespace = namespace
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._name = name
        self._clock = clock
        self._candidate = ElectionCandidate(identity, LEASE_DURATION)
        self._elected = asyncio.Event()
        self._log_throttle = LogThrottle(clock)

    def leads(self) -> bool:
        """Return whether this replica may act now."""
        return self._candidate.leads(self._clock())

    async def restore_version_times(self) -> None:
        """Take what the leader has noted. Raises ApiError, but where it may not be read."""
        with suppress(ForbiddenError):  # jobs count as younger; the election says what is missing
            self._restore_version_times(await self._get_lease())

    async def wait_until_elected(self) -> None:
        """Wait until this replica leads."""
        while not self.leads():
            self._elected.clear()
            await self._elected.wait()

    async def run(
        self, check_fitness: Callable[[], str], *, wakes_from_arrays: bool = True
    ) -> None:
        """Take part until cancelled; whatever fails is tried again.

        `check_fitness` is asked at each turn and says what keeps this replica from leading, or
        nothing: it then looks on, or hands over. `wakes_from_arrays` says whether it may watch
        arrays, and so wakes jobs that wait for them.
        """
        self._wakes_from_arrays, led = wakes_from_arrays, False
        while True:
            try:
                async with asyncio.timeout(REQUEST_TIMEOUT):
                    await self.try_acquire_or_renew(check_fitness())
            except (ApiError, TimeoutError) as error:
                await self._log_failure(error)
            if self.leads() is not led:
                led = not led
                log.info("leading" if led else "not leading", identity=self._candidate.identity)
            await asyncio.sleep(RENEW_INTERVAL if led else RETRY_INTERVAL)

    async def _log_failure(self, error: Exception) -> None:
        """Say what is wrong and, where it is a permission, which; at most once a minute."""
        message = str(error) or type(error).__name__
        if not self._log_throttle.allow(message):
            return
        log.warning("election attempt failed", error=message)
        if isinstance(error, ForbiddenError):
            for line in await self._missing_permissions():
                log.error(line)

    async def _missing_permissions(self) -> list[str]:
        needed = [(permission, self._namespace) for permission in election(self._name)]
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                return (await check_permissions(self._session, needed)).errors
        except (ApiError, TimeoutError):
            return []  # the message of the refusal has to do

    async def try_acquire_or_renew(self, unfit_reason: str = "") -> None:
        """Do one step: renew, take or look; who is unfit looks on, and hands over if it leads."""
        if unfit_reason:
            if self.leads():
                log.warning("handing leadership over", why=unfit_reason)
                await self.release()
            await self._read_lease()
            return
        if self._candidate.next_step(self._clock()) is not ElectionStep.RENEW:
            await self._read_lease()
        if self._candidate.next_step(self._clock()) is not ElectionStep.WAIT:
            await self._write_lease(self._candidate.identity)

    async def release(self) -> None:
        """Stop leading and let the next replica take over at once."""
        led = self.leads()
        self._candidate.resign()
        if not led:
            return
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                await self._clear_holder()
        except (ApiError, TimeoutError) as error:
            log.warning("leadership not released", error=str(error) or type(error).__name__)

    async def _clear_holder(self) -> None:
        try:
            await self._patch_lease(self._lease_body(""))
        except ConflictError:  # a renewal that was cut short had gone through
            await self._read_lease()
            if self._candidate.next_step(self._clock()) is ElectionStep.RENEW:
                await self._patch_lease(self._lease_body(""))

    async def _read_lease(self) -> None:
        record = await self._get_lease()
        self._candidate.observe(record, self._clock())
        self._restore_version_times(record)

    async def _get_lease(self) -> LeaderElectionRecord | None:
        try:
            lease = await self._session.get(f"{self._collection}/{self._name}")
        except ObjectNotFoundError:
            return None
        return read_election_record(lease)

    def _restore_version_times(self, record: LeaderElectionRecord | None) -> None:
        if record:
            self.version_times.restore(record.version_times, record.created_at)
        else:
            self.version_times.restore("", 0)

    async def _write_lease(self, holder: str) -> None:
        sent_at = self._clock()
        body = self._lease_body(holder)
        try:
            if self._candidate.record is None:
                answer = await self._session.create(self._collection, body)
            else:
                answer = await self._patch_lease(body)
        except (ConflictError, ObjectNotFoundError):
            await self._read_lease()
            return
        self._candidate.record_write(read_election_record(answer), sent_at, self._clock())
        self._elected.set()

    def _lease_body(self, holder: str) -> JsonObject:
        return election_lease_body(
            self._candidate,
            self._name,
            holder,
            micro_time(),
            self.version_times.text(),
            wakes_from_arrays=self._wakes_from_arrays,
        )

    async def _patch_lease(self, body: JsonObject) -> JsonObject:
        return await self._session.merge_patch(f"{self._collection}/{self._name}", body)


class AlwaysLeader:
    """Stands in for the election where there is but one operator."""

    def __init__(self) -> None:
        self.version_times = VersionTimes()

    def leads(self) -> bool:
        """Return True."""
        return True

    async def restore_version_times(self) -> None:
        """Do nothing: there is no Lease in which to keep them."""

    async def wait_until_elected(self) -> None:
        """Return at once."""

    async def run(
        self,
        check_fitness: Callable[[], str],
        *,
        wakes_from_arrays: bool = True,  # noqa: ARG002  # there is no Lease to announce it in
    ) -> None:
        """Go on asking, though nobody could take over: asking counts as progress."""
        while True:
            check_fitness()
            await asyncio.sleep(RETRY_INTERVAL)

    async def release(self) -> None:
        """Do nothing."""
