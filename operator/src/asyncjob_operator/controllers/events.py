"""Kubernetes Events: posted in the background and at a limited rate.

Besides Events about single jobs there is one for a recovery storm, and one for a queue in
which jobs wait although no worker serves it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import structlog

from asyncjob.errors import ApiError
from asyncjob.kube import KubeSession
from asyncjob_operator.core.events import (
    EventReason,
    KubernetesEvent,
    event_body,
    namespace_event,
    queue_event,
)
from asyncjob_operator.core.now import Now
from asyncjob_operator.telemetry.job_metrics import NamespacedName
from asyncjob_operator.telemetry.loop_health import LoopHealth
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from asyncjob_operator.telemetry.quarantine import Activity, ObjectKind, ObjectRef, Quarantine

log = structlog.get_logger()

MAX_QUEUED_EVENTS: Final = 1000
"""Events that wait to be posted; further ones are dropped, and counted in a summary."""

EVENT_BURST: Final = 25.0
SECONDS_PER_EVENT: Final = 6.0
"""Per namespace a burst of `EVENT_BURST` Events is posted, then one per `SECONDS_PER_EVENT`.
The burst is that of client-go's own recorder; the rate is chosen, not measured: ten a minute."""

MAX_SUBJECT_LENGTH: Final = 200
"""Characters of the object's name in that of its Event, so that a time still fits behind it."""

SUMMARY_SECONDS: Final = 300.0
"""Seconds after its first dropped Event in which a namespace gets one Event that counts them."""

PURGE_SECONDS: Final = 60.0
"""Seconds between two looks through all Events that were posted lately."""


class EventRecorder:
    """Queues Events and posts them, at most at a certain rate in each namespace."""

    def __init__(
        self,
        session: KubeSession,
        reporting_instance: str,
        now: Callable[[], Now],
        metrics: OperatorMetrics,
        quarantine: Quarantine,
    ) -> None:
        self._session = session
        self._reporting_instance = reporting_instance
        self._now = now
        self._metrics = metrics
        self._quarantine = quarantine
        self._queue: asyncio.Queue[KubernetesEvent] = asyncio.Queue(MAX_QUEUED_EVENTS)
        self._token_buckets: dict[str, tuple[float, float]] = {}
        self._suppressed_until: dict[tuple[str, str, str, str], float] = {}
        self._purge_at = 0.0
        self._dropped: dict[str, tuple[int, float]] = {}

    def record(self, event: KubernetesEvent) -> None:
        """Post the Event soon, unless it was posted lately or there are too many."""
        if self._is_suppressed(event):
            return
        if self._queue.full() or not self._take_token(event.namespace):
            self._drop(event.namespace)
            return
        if event.min_interval:
            self._suppressed_until[event.dedup_key] = self._now().monotonic + event.min_interval
        self._queue.put_nowait(event)

    async def run(self, health: LoopHealth) -> None:
        """Post until cancelled."""
        while True:
            try:
                with health.idle():
                    async with asyncio.timeout(SUMMARY_SECONDS / 10):
                        event = await self._queue.get()
            except TimeoutError:
                pass
            else:
                ref = ObjectRef(ObjectKind(event.kind), event.namespace, event.name)
                with self._quarantine.guard(ref, Activity.RECORD_EVENT):
                    await self._post(event)
            await self._post_summaries()

    async def _post(self, event: KubernetesEvent) -> None:
        now = self._now()
        name = f"{event.name[:MAX_SUBJECT_LENGTH].rstrip('-.')}.{int(now.wall * 1e6):x}"
        body = event_body(event, name, self._reporting_instance, now.timestamp)
        try:
            await self._session.create(f"/api/v1/namespaces/{event.namespace}/events", body)
        except ApiError as error:
            log.warning("event not posted", about=event.name, error=str(error))
            self._metrics.kubernetes_events.labels("error").inc()
        else:
            self._metrics.kubernetes_events.labels("posted").inc()

    def _drop(self, namespace: str) -> None:
        self._metrics.kubernetes_events.labels("dropped").inc()
        count, since = self._dropped.get(namespace, (0, self._now().monotonic))
        self._dropped[namespace] = (count + 1, since)

    async def _post_summaries(self) -> None:
        """Post, in one Event per namespace, how many were dropped."""
        now = self._now().monotonic
        for namespace, (count, since) in list(self._dropped.items()):
            if now >= since + SUMMARY_SECONDS:
                del self._dropped[namespace]
                message = (
                    f"{count} Events about jobs were left out: see "
                    "kubectl get asyncjobs --field-selector status.phase=DeadLetter"
                )
                await self._post(namespace_event(namespace, EventReason.EVENTS_LEFT_OUT, message))

    def _is_suppressed(self, event: KubernetesEvent) -> bool:
        now = self._now().monotonic
        if now >= self._purge_at:
            self._purge_at = now + PURGE_SECONDS
            self._suppressed_until = {
                key: until for key, until in self._suppressed_until.items() if until > now
            }
        return self._suppressed_until.get(event.dedup_key, now) > now

    def _take_token(self, namespace: str) -> bool:
        now = self._now().monotonic
        tokens, at = self._token_buckets.get(namespace, (EVENT_BURST, now))
        tokens = min(EVENT_BURST, tokens + (now - at) / SECONDS_PER_EVENT)
        self._token_buckets[namespace] = (max(tokens - 1.0, 0.0) if tokens >= 1.0 else tokens, now)
        return tokens >= 1.0


STORM_JOBS: Final = 20
STORM_SECONDS: Final = 60.0
"""`STORM_JOBS` recoveries in a namespace within `STORM_SECONDS` are a recovery storm.
Chosen, not measured: one lost worker with a few slots is none, several at once are."""


class RecoveryStormEvents:
    """Records an Event for each recovery storm; `clock` returns monotonic seconds."""

    def __init__(
        self, record_event: Callable[[KubernetesEvent], None], clock: Callable[[], float]
    ) -> None:
        self._record_event = record_event
        self._clock = clock
        self._recent: dict[str, deque[float]] = {}

    def on_recovered(self, namespace: str, reason: str) -> None:
        """Count a recovered job, and record one Event once there is a storm."""
        now = self._clock()
        recent = self._recent.setdefault(namespace, deque(maxlen=STORM_JOBS))
        recent.append(now)
        if len(recent) == STORM_JOBS and now - recent[0] <= STORM_SECONDS:
            recent.clear()
            message = (
                f"{STORM_JOBS} jobs or more were taken from dead workers within a minute, "
                f"the last one for {reason}"
            )
            self._record_event(namespace_event(namespace, EventReason.RECOVERY_STORM, message))


UNSERVED_SECONDS: Final = 300.0
"""Seconds a queue may be without workers: a rollout or scaling from zero takes time."""


class UnservedQueueEvents:
    """Records an Event for each queue in which jobs wait although no worker serves it.

    `oldest_waits` returns for how many seconds the oldest job of each queue has waited, and
    `capacities` workers and slots of each queue, None if they are not known.
    """

    def __init__(
        self,
        oldest_waits: Callable[[], Awaitable[Mapping[NamespacedName, float]]],
        capacities: Callable[[], Mapping[NamespacedName, tuple[int, int]] | None],
        record_event: Callable[[KubernetesEvent], None],
    ) -> None:
        self._oldest_waits = oldest_waits
        self._capacities = capacities
        self._record_event = record_event

    async def check(self) -> None:
        """Check all queues once; no Event is recorded while the workers are not known."""
        oldest_waits, capacities = await self._oldest_waits(), self._capacities()
        if capacities is None:
            return
        for queue, waited in oldest_waits.items():
            workers, _ = capacities.get(queue, (0, 0))
            if waited > UNSERVED_SECONDS and not workers:
                message = f"no worker serves the queue; its oldest job waits for {waited:.0f} s"
                self._record_event(queue_event(*queue, EventReason.NO_WORKERS, message))
