"""Takes part in the election of the one operator that acts, through a coordination Lease."""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from asyncjob.errors import ApiError, ConflictError, ForbiddenError, NotFoundError
from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob_operator.core.election import Candidacy, Record, Step, lease_body, read_record
from asyncjob_operator.core.permissions import election
from asyncjob_operator.kube.clock import micro_text, monotonic
from asyncjob_operator.kube.preflight import denied
from asyncjob_operator.telemetry.repeats import Repeats

log = structlog.get_logger()

DURATION: Final = 10.0
RENEW_INTERVAL: Final = 2.0
RETRY_INTERVAL: Final = 1.0
REQUEST_SECONDS: Final = 3.0


class Elector:
    """Holds or seeks the Lease; has a session of its own, which no other request can fill up."""

    def __init__(
        self,
        session: KubeSession,
        namespace: str,
        name: str,
        identity: str,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._session = session
        self._namespace = namespace
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._name = name
        self._clock = clock
        self._candidacy = Candidacy(identity, DURATION)
        self._elected = asyncio.Event()
        self._repeats = Repeats(clock)

    def leads(self) -> bool:
        """Return whether this replica may act now."""
        return self._candidacy.leads(self._clock())

    async def elected(self) -> None:
        """Wait until this replica leads."""
        while not self.leads():
            self._elected.clear()
            await self._elected.wait()

    async def run(self, unfit: Callable[[], str]) -> None:
        """Take part until cancelled; whatever fails is tried again.

        `unfit` is asked at each turn and says what keeps this replica from leading, or nothing: it
        then looks on, or hands over.
        """
        led = False
        while True:
            try:
                async with asyncio.timeout(REQUEST_SECONDS):
                    await self.turn(unfit())
            except (ApiError, TimeoutError) as error:
                await self._complain(error)
            if self.leads() is not led:
                led = not led
                log.info("leading" if led else "not leading", identity=self._candidacy.identity)
            await asyncio.sleep(RENEW_INTERVAL if led else RETRY_INTERVAL)

    async def _complain(self, error: Exception) -> None:
        """Say what is wrong and, where it is a permission, which; at most once a minute."""
        message = str(error) or type(error).__name__
        if not self._repeats.allow(message):
            return
        log.warning("election turn failed", error=message)
        if isinstance(error, ForbiddenError):
            for line in await self._denied():
                log.error(line)

    async def _denied(self) -> list[str]:
        asked = [(permission, self._namespace) for permission in election(self._name)]
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                return (await denied(self._session, asked)).errors
        except (ApiError, TimeoutError):
            return []  # the message of the refusal has to do

    async def turn(self, unfit: str = "") -> None:
        """Do one step: renew, take or look; who is unfit looks on, and hands over if it leads."""
        if unfit:
            if self.leads():
                log.warning("handing leadership over", why=unfit)
                await self.release()
            await self._look()
            return
        if self._candidacy.step(self._clock()) is not Step.RENEW:
            await self._look()
        if self._candidacy.step(self._clock()) is not Step.WAIT:
            await self._write(self._candidacy.identity)

    async def release(self) -> None:
        """Stop leading and let the next replica take over at once."""
        led = self.leads()
        self._candidacy.resign()
        if not led:
            return
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                await self._release()
        except (ApiError, TimeoutError) as error:
            log.warning("leadership not released", error=str(error) or type(error).__name__)

    async def _release(self) -> None:
        try:
            await self._patch(lease_body(self._candidacy, self._name, "", micro_text()))
        except ConflictError:  # a renewal that was cut short had gone through
            await self._look()
            if self._candidacy.step(self._clock()) is Step.RENEW:
                await self._patch(lease_body(self._candidacy, self._name, "", micro_text()))

    async def _look(self) -> None:
        try:
            record: Record | None = read_record(
                await self._session.get(f"{self._collection}/{self._name}")
            )
        except NotFoundError:
            record = None
        self._candidacy.observe(record, self._clock())

    async def _write(self, holder: str) -> None:
        sent_at = self._clock()
        body = lease_body(self._candidacy, self._name, holder, micro_text())
        try:
            if self._candidacy.record is None:
                answer = await self._session.create(self._collection, body)
            else:
                answer = await self._patch(body)
        except (ConflictError, NotFoundError):
            await self._look()
            return
        self._candidacy.written(read_record(answer), sent_at, self._clock())
        self._elected.set()

    async def _patch(self, body: JsonObject) -> JsonObject:
        return await self._session.merge_patch(f"{self._collection}/{self._name}", body)


class AlwaysElected:
    """Stands in for the election where there is but one operator."""

    def leads(self) -> bool:
        """Return True."""
        return True

    async def elected(self) -> None:
        """Return at once."""

    async def run(self, unfit: Callable[[], str]) -> None:
        """Ask on, though nobody could take over: whoever asks is counted among what goes on."""
        while True:
            unfit()
            await asyncio.sleep(RETRY_INTERVAL)

    async def release(self) -> None:
        """Do nothing."""
