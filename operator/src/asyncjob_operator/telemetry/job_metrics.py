"""Metrics of all jobs, as the leader alone exports them: a standby would only count them twice.

Gauges are counted when somebody asks. Counters take in what is seen to happen while leading; what
is only found in a list has happened unseen, and is not counted.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.registry import Collector

from asyncjob.instruments import Family, Samples, counter, family, histogram
from asyncjob.lifecycle.phases import FINISHED, Phase
from asyncjob.lifecycle.view import JobView
from asyncjob.metrics import jobs
from asyncjob_operator.core.retention import Finished
from asyncjob_operator.core.sighting import Sighting
from asyncjob_operator.telemetry.job_labels import JobLabels

Queue = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class Look:
    """All jobs and queues as they are now. `ages` are in seconds, of the oldest job that waits.

    `crews` are workers and slots, None where they cannot be known.
    """

    counts: Mapping[tuple[str, str, Phase], int] = field(default_factory=dict)
    ages: Mapping[Queue, float] = field(default_factory=dict)
    crews: Mapping[Queue, tuple[int, int]] | None = None
    finished_limit: int | None = None


class JobMetrics:
    """What happens to jobs, in the registry of the operator's metrics."""

    def __init__(
        self, registry: CollectorRegistry, leads: Callable[[], bool], clock: Callable[[], float]
    ) -> None:
        self._registry = registry
        self._leads = leads
        self._clock = clock
        self._labels = JobLabels()
        self._submitted = counter(jobs.SUBMITTED, registry)
        self._claimed = counter(jobs.CLAIMED, registry)
        self._retried = counter(jobs.RETRIED, registry)
        self._succeeded = counter(jobs.SUCCEEDED, registry)
        self._redriven = counter(jobs.REDRIVEN, registry)
        self._dead = counter(jobs.DEAD_LETTERED, registry)
        self._cancelled = counter(jobs.CANCELLED, registry)
        self._queue_wait = histogram(jobs.QUEUE_WAIT, registry)
        self._end_to_end = histogram(jobs.END_TO_END, registry)

    def show(self, look: Callable[[], Look | None]) -> None:
        """Show what `look` says whenever somebody asks; None: nothing is known yet."""
        self._registry.register(_Gauges(look, self._leads, self._labels))

    def saw(self, known: JobView | Finished | None, job: JobView, seen: Sighting | None) -> None:
        """Take a job as it has just changed; `known` and `seen` are of how it was before."""
        if known is not None and known.phase is job.phase and known.attempt == job.attempt:
            return
        if not self._leads():
            return
        if known is None:
            self._count(self._submitted, job)
        begun = job.attempt - (known.attempt if known else 0)
        if begun > 0:
            self._count(self._claimed, job, begun)
        if known is None or known.phase is not job.phase:
            self._entered(known.phase if known else None, job)
            self._timed(job, seen)

    def _entered(self, before: Phase | None, job: JobView) -> None:
        match job.phase:
            case Phase.RETRYING:
                self._count(self._retried, job)
            case Phase.SUCCEEDED:
                self._count(self._succeeded, job)
            case Phase.DEAD_LETTER:
                self._dead.labels(*self._reasoned(job)).inc()
            case Phase.CANCELLED:
                self._cancelled.labels(*self._reasoned(job)).inc()
            case _:
                pass
        if before is Phase.DEAD_LETTER and job.phase not in FINISHED:
            self._count(self._redriven, job)

    def _timed(self, job: JobView, seen: Sighting | None) -> None:
        if seen is None:
            return
        queue = self._labels.queue((job.namespace, job.queue))
        if job.phase is Phase.RUNNING and seen.stay[0] is Phase.QUEUED and seen.whole:
            self._queue_wait.labels(*queue).observe(self._clock() - seen.since)
        elif job.finished and seen.appeared_at is not None:
            self._end_to_end.labels(*queue).observe(self._clock() - seen.appeared_at)

    def _count(self, metric: Counter, job: JobView, by: int = 1) -> None:
        metric.labels(*self._labels.typed(job.namespace, job.queue, job.type)).inc(by)

    def _reasoned(self, job: JobView) -> tuple[str, ...]:
        return self._labels.reasoned(job.namespace, job.queue, job.type, job.reason)


class _Gauges(Collector):
    def __init__(
        self, look: Callable[[], Look | None], leads: Callable[[], bool], labels: JobLabels
    ) -> None:
        self._look = look
        self._leads = leads
        self._labels = labels

    def collect(self) -> Iterator[Family]:
        look = self._look() if self._leads() else None
        if look is None:
            return
        yield family(jobs.JOBS, self._jobs(look))
        queues = sorted(
            {(namespace, queue) for namespace, queue, _ in look.counts} | set(look.ages)
        )
        yield family(jobs.OLDEST, self._folded({q: look.ages.get(q, 0.0) for q in queues}, max))
        if look.crews is not None:
            known = dict.fromkeys(queues, (0, 0)) | dict(look.crews)
            for spec, number in ((jobs.WORKERS, 0), (jobs.SLOTS, 1)):
                crews = {queue: float(crew[number]) for queue, crew in known.items()}
                yield family(spec, self._folded(crews, _sum))
        if look.finished_limit is not None:
            yield family(jobs.FINISHED_LIMIT, {(): look.finished_limit})

    def _jobs(self, look: Look) -> Samples:
        """Return jobs by queue and phase, those phases included that no job of a queue is in."""
        counts: dict[tuple[str, ...], float] = {}
        for (namespace, queue, phase), count in look.counts.items():
            shown = self._labels.queue((namespace, queue))
            if (*shown, phase.value) not in counts:
                counts |= {(*shown, each.value): 0.0 for each in Phase}
            counts[*shown, phase.value] += count
        return counts

    def _folded(
        self, values: Mapping[Queue, float], fold: Callable[[float, float], float]
    ) -> Samples:
        folded: dict[tuple[str, ...], float] = {}
        for queue, value in values.items():
            shown = self._labels.queue(queue)
            folded[shown] = fold(folded[shown], value) if shown in folded else value
        return folded


def _sum(one: float, other: float) -> float:
    return one + other
