"""Posts Events: never in the way of a write, and never in floods."""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from asyncjob.errors import ApiError
from asyncjob.kube import KubeSession
from asyncjob_operator.core.job_event import Notice, event_body, namespace_notice
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.vitals import Pulse
from asyncjob_operator.telemetry.containment import Containment, Doing, Kind, Subject
from asyncjob_operator.telemetry.metrics import Metrics

log = structlog.get_logger()

BACKLOG: Final = 1000
BURST: Final = 25.0
SECONDS_PER_NOTICE: Final = 6.0
MAX_NAME: Final = 200
LEFT_OUT: Final = "EventsLeftOut"
SUMMARY_SECONDS: Final = 300.0
"""What was dropped is told in one Event per namespace so long after the first of it."""


class Notices:
    """A queue of Events; per namespace a burst is told, then one every few seconds."""

    def __init__(
        self,
        session: KubeSession,
        reporter: str,
        now: Callable[[], Moment],
        metrics: Metrics,
        containment: Containment,
    ) -> None:
        self._session = session
        self._reporter = reporter
        self._now = now
        self._metrics = metrics
        self._containment = containment
        self._queue: asyncio.Queue[Notice] = asyncio.Queue(BACKLOG)
        self._allowance: dict[str, tuple[float, float]] = {}
        self._resting: dict[tuple[str, str, str, str], float] = {}
        self._left_out: dict[str, tuple[int, float]] = {}

    def tell(self, notice: Notice) -> None:
        """Post the notice soon, unless it was told lately or there are too many."""
        if self._rests(notice):
            return
        if self._queue.full() or not self._allowed(notice.namespace):
            self._drop(notice.namespace)
            return
        if notice.rest:
            self._resting[notice.subject] = self._now().monotonic + notice.rest
        self._queue.put_nowait(notice)

    async def run(self, pulse: Pulse) -> None:
        """Post until cancelled."""
        while True:
            try:
                with pulse.idle():
                    async with asyncio.timeout(SUMMARY_SECONDS / 10):
                        notice = await self._queue.get()
            except TimeoutError:
                pass
            else:
                one = Subject(Kind(notice.kind), notice.namespace, notice.name)
                with self._containment.guard(one, Doing.TELL):
                    await self._post(notice)
            await self._sum_up()

    async def _post(self, notice: Notice) -> None:
        now = self._now()
        name = f"{notice.name[:MAX_NAME].rstrip('-.')}.{int(now.wall * 1e6):x}"
        body = event_body(notice, name, self._reporter, now.text)
        try:
            await self._session.create(f"/api/v1/namespaces/{notice.namespace}/events", body)
        except ApiError as error:
            log.warning("event not posted", about=notice.name, error=str(error))
            self._metrics.notices.labels("error").inc()
        else:
            self._metrics.notices.labels("posted").inc()

    def _drop(self, namespace: str) -> None:
        self._metrics.notices.labels("dropped").inc()
        count, since = self._left_out.get(namespace, (0, self._now().monotonic))
        self._left_out[namespace] = (count + 1, since)

    async def _sum_up(self) -> None:
        """Tell in one Event per namespace how many were dropped."""
        now = self._now().monotonic
        for namespace, (count, since) in list(self._left_out.items()):
            if now >= since + SUMMARY_SECONDS:
                del self._left_out[namespace]
                message = (
                    f"{count} Events about jobs were left out: see "
                    "kubectl get asyncjobs --field-selector status.phase=DeadLetter"
                )
                await self._post(namespace_notice(namespace, LEFT_OUT, message))

    def _rests(self, notice: Notice) -> bool:
        now = self._now().monotonic
        self._resting = {told: until for told, until in self._resting.items() if until > now}
        return notice.subject in self._resting

    def _allowed(self, namespace: str) -> bool:
        now = self._now().monotonic
        tokens, at = self._allowance.get(namespace, (BURST, now))
        tokens = min(BURST, tokens + (now - at) / SECONDS_PER_NOTICE)
        self._allowance[namespace] = (max(tokens - 1.0, 0.0) if tokens >= 1.0 else tokens, now)
        return tokens >= 1.0
