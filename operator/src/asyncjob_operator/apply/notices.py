"""Posts Events: never in the way of a write, and never in floods."""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from asyncjob.errors import ApiError
from asyncjob.kube import KubeSession
from asyncjob_operator.core.job_event import Notice, event_body
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.telemetry.metrics import Metrics

log = structlog.get_logger()

BACKLOG: Final = 1000
BURST: Final = 25.0
SECONDS_PER_NOTICE: Final = 6.0
MAX_NAME: Final = 200


class Notices:
    """A queue of Events; per namespace a burst is told, then one every few seconds."""

    def __init__(
        self, session: KubeSession, reporter: str, now: Callable[[], Moment], metrics: Metrics
    ) -> None:
        self._session = session
        self._reporter = reporter
        self._now = now
        self._metrics = metrics
        self._queue: asyncio.Queue[Notice] = asyncio.Queue(BACKLOG)
        self._allowance: dict[str, tuple[float, float]] = {}
        self._resting: dict[tuple[str, str, str, str], float] = {}

    def tell(self, notice: Notice) -> None:
        """Post the notice soon, unless it was told lately or there are too many."""
        if self._rests(notice):
            return
        if self._queue.full() or not self._allowed(notice.namespace):
            self._metrics.notices.labels("dropped").inc()
            return
        if notice.rest:
            self._resting[notice.subject] = self._now().monotonic + notice.rest
        self._queue.put_nowait(notice)

    async def run(self) -> None:
        """Post until cancelled."""
        while True:
            await self._post(await self._queue.get())

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
