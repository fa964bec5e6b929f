"""Rules of queues with limits: reservations, admissions, what runs at once, and rates.

Jobs and queues come by two watches, so that a claim may be seen before the queue that allowed it.
What depends on both is judged once a version of the queue has come that is newer than the claim,
by the order of resourceVersions, which all objects in one store share.
"""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from asyncjob.audit import catalog
from asyncjob.audit.catalog import Subject, Violation
from asyncjob.audit.job_groups import subject_of
from asyncjob.audit.job_version import JobVersion, epoch_of, order_of
from asyncjob.json_types import JsonObject, as_object, child, flag, items, opt_integer, text
from asyncjob.names import QUEUES

SETTLING_SECONDS: Final = 10.0
"""How long workers and operator may go by the limits that a queue had before."""

RATE_TOLERANCE: Final = 0.05
"""Fraction of a period by which starts may come early: the operator adds up starts of a fiftieth of
a period, and times have milliseconds."""

_RUNNING: Final = "Running"


@dataclass(frozen=True, slots=True)
class _Limits:
    total: int | None = None
    per_key: int | None = None
    rate: int | None = None
    period: int = 1

    @property
    def counts_running(self) -> bool:
        return self.total is not None or self.per_key is not None

    def __bool__(self) -> bool:
        return self.counts_running or self.rate is not None


_NO_LIMITS: Final = _Limits()


@dataclass(frozen=True, slots=True)
class _Start:
    """A claim or admission that is judged when the queue's own watch has come as far."""

    job: JobVersion
    running: int
    running_with_key: int
    granted_before: int
    """`order` of the version that admitted it; 0: not known."""

    is_claim: bool


@dataclass(slots=True)
class _Queue:
    """What is known of one queue."""

    limits: _Limits = _NO_LIMITS
    limits_since: int = 0
    """`order` of the version that brought the limits."""

    limits_seen: float = 0.0
    order: int = 0
    """`order` of the newest version seen."""

    known_since: int = 0
    """`order` from which on no version is missing."""

    reserved: dict[str, str] = field(default_factory=dict)
    """UID of a job with a reservation → which stay in the queue it is for."""

    intervals: dict[str, tuple[int, int]] = field(default_factory=dict)
    """UID → `order` of the version that brought its newest reservation, and that ended it, or 0."""

    grants: deque[tuple[float, float]] = field(default_factory=deque)
    """Time of each reservation of the last period, by the operator and by the recorder."""

    open: deque[_Start] = field(default_factory=deque)
    running: Counter[str] = field(default_factory=Counter)
    """Running jobs by concurrency key, and of all under the key None."""

    running_total: int = 0


class QueueChecker:
    """All queues that have jobs or an AsyncQueue."""

    def __init__(self) -> None:
        self._queues: dict[tuple[str, str], _Queue] = {}
        self._admitted: dict[str, int] = {}
        self._listed: set[tuple[str, str]] = set()
        self.jobs_complete = False
        """Whether every job is known, which is not so before the first list has ended."""

    def begin_list(self) -> None:
        """Record that queues are listed again: versions before may be missing."""
        self._listed = set()
        for queue in self._queues.values():
            queue.intervals.clear()
            queue.reserved = {}
            queue.grants.clear()
            queue.open.clear()

    def end_list(self, seen: float) -> None:
        """Record that the list is complete: a queue that was not in it is gone."""
        for key, queue in self._queues.items():
            if key not in self._listed and queue.limits:
                queue.limits, queue.limits_seen = _NO_LIMITS, seen

    def on_queue(self, obj: JsonObject, seen: float, *, event: str) -> Iterator[Violation]:
        """Take a version of an AsyncQueue."""
        meta = child(obj, "metadata")
        key = (text(meta, "namespace"), text(meta, "name"))
        queue = self._queues.setdefault(key, _Queue())
        order = order_of(text(meta, "resourceVersion"))
        yield from self._judge_open(queue, key, until=order)
        if event == "DELETED":
            queue.limits, queue.limits_since, queue.limits_seen = _NO_LIMITS, order, seen
            queue.reserved, queue.order = {}, order
            return
        if event == "LISTED":
            self._listed.add(key)
        if queue.order == 0 or event == "LISTED":
            queue.known_since = order
        yield from self._take(queue, obj, seen, baseline=event == "LISTED")
        queue.order = order

    def _take(
        self, queue: _Queue, obj: JsonObject, seen: float, *, baseline: bool
    ) -> Iterator[Violation]:
        limits, order = _read_limits(child(obj, "spec")), order_of(_version(obj))
        if limits != queue.limits:
            if (limits.rate, limits.period) != (queue.limits.rate, queue.limits.period):
                queue.grants.clear()
            queue.limits, queue.limits_since, queue.limits_seen = limits, order, seen
        entries = [as_object(item) for item in items(child(obj, "status"), "reservations")]
        reserved = {text(entry, "uid"): _stay(entry) for entry in entries}
        new = [entry for entry in entries if queue.reserved.get(text(entry, "uid")) != _stay(entry)]
        for uid in queue.reserved.keys() - reserved.keys():
            began, _ = queue.intervals.get(uid, (0, 0))
            queue.intervals[uid] = (began, order)
        for entry in new:
            queue.intervals[text(entry, "uid")] = (order, 0)
        queue.reserved = reserved
        if new and not baseline:
            yield from _check_reservations(obj, limits, entries, new, seen)
            yield from _check_rate(queue, obj, limits, new, seen)

    def on_version(self, was: JobVersion | None, now: JobVersion, *, exact: bool = True) -> None:
        """Take a version of a job; not `exact`: some between it and the one before are missing."""
        key = (now.namespace, now.queue)
        runs, ran = now.phase == _RUNNING, was is not None and was.phase == _RUNNING
        newly_admitted = now.admitted and not (was is not None and was.admitted)
        if newly_admitted:
            self._admitted[now.uid] = now.order if was is not None and exact else 0
        if runs == ran and not newly_admitted:
            if not now.admitted:
                self._admitted.pop(now.uid, None)
            return
        queue = self._queues.setdefault(key, _Queue())
        if runs != ran:
            self._count(queue, now, 1 if runs else -1)
        claimed = runs and not ran
        if was is not None and exact and (claimed or newly_admitted) and queue.limits:
            start = _Start(
                now,
                queue.running_total,
                queue.running[now.concurrency_key],
                self._admitted.get(now.uid, 0),
                is_claim=claimed,
            )
            queue.open.append(start)
        if not now.admitted:
            self._admitted.pop(now.uid, None)

    def on_deleted(self, job: JobVersion) -> None:
        """Forget a job."""
        queue = self._queues.get((job.namespace, job.queue))
        self._admitted.pop(job.uid, None)
        if queue is not None:
            if job.phase == _RUNNING:
                self._count(queue, job, -1)
            queue.intervals.pop(job.uid, None)

    def on_end(self, ended_at: float) -> Iterator[Violation]:
        """Judge what was still open, if the queue's watch had time enough to come as far."""
        for key, queue in self._queues.items():
            late = [start for start in queue.open if start.job.seen + SETTLING_SECONDS <= ended_at]
            for start in late:
                yield from self._judge(queue, key, start)

    def _count(self, queue: _Queue, job: JobVersion, change: int) -> None:
        queue.running_total += change
        if job.concurrency_key:
            queue.running[job.concurrency_key] += change
            if not queue.running[job.concurrency_key]:
                del queue.running[job.concurrency_key]

    def _judge_open(
        self, queue: _Queue, key: tuple[str, str], *, until: int
    ) -> Iterator[Violation]:
        """Judge the starts older than a version of the queue, by the one before."""
        while queue.open and queue.open[0].job.order < until:
            yield from self._judge(queue, key, queue.open.popleft())

    def _judge(self, queue: _Queue, key: tuple[str, str], start: _Start) -> Iterator[Violation]:
        job, limits = start.job, queue.limits
        settled = job.seen >= queue.limits_seen + SETTLING_SECONDS
        if not limits or not settled or job.order < queue.known_since:
            return
        fresh = start.granted_before > queue.limits_since or not start.granted_before
        if start.is_claim:
            if not job.admitted:
                yield _broken(
                    catalog.QUEUE_ADMISSION, job, f"claimed in queue {key[1]} without admission"
                )
            elif fresh and start.granted_before and self.jobs_complete:
                yield from _check_concurrency(limits, key[1], start)
        if fresh and start.granted_before and (limits.counts_running or not start.is_claim):
            yield from _check_reserved(queue, key[1], start)


def _check_concurrency(limits: _Limits, queue: str, start: _Start) -> Iterator[Violation]:
    job = start.job
    if limits.total is not None and start.running > limits.total:
        yield _broken(
            catalog.QUEUE_CONCURRENCY,
            job,
            f"with this claim {start.running} jobs of queue {queue} run, maxConcurrency is "
            f"{limits.total}",
        )
    with_key = start.running_with_key if job.concurrency_key else 0
    if limits.per_key is not None and with_key > limits.per_key:
        yield _broken(
            catalog.QUEUE_CONCURRENCY,
            job,
            f"with this claim {with_key} jobs with concurrencyKey {job.concurrency_key} run in "
            f"queue {queue}, maxConcurrencyPerKey is {limits.per_key}",
        )


def _check_reserved(queue: _Queue, name: str, start: _Start) -> Iterator[Violation]:
    began, ended = queue.intervals.get(start.job.uid, (0, 0))
    what = "claimed" if start.is_claim else "admitted"
    if not began or began > start.job.order:
        if start.job.uid not in queue.reserved or began:
            yield _broken(
                catalog.QUEUE_ADMISSION,
                start.job,
                f"{what} without a reservation in queue {name}",
            )
    elif ended and ended < start.job.order:
        yield _broken(
            catalog.QUEUE_ADMISSION,
            start.job,
            f"{what} after its reservation in queue {name} was reclaimed",
        )


def _check_reservations(
    obj: JsonObject,
    limits: _Limits,
    entries: list[JsonObject],
    new: list[JsonObject],
    seen: float,
) -> Iterator[Violation]:
    if limits.total is not None and len(entries) > limits.total:
        yield _of_queue(
            catalog.QUEUE_RESERVATIONS,
            obj,
            f"{len(entries)} reservations, {len(new)} of them new; maxConcurrency is "
            f"{limits.total}",
            seen,
        )
    if limits.per_key is None:
        return
    by_key = Counter(text(entry, "key") for entry in entries)
    for key in {text(entry, "key") for entry in new} - {""}:
        if by_key[key] > limits.per_key:
            yield _of_queue(
                catalog.QUEUE_RESERVATIONS,
                obj,
                f"{by_key[key]} reservations for concurrencyKey {key}; maxConcurrencyPerKey is "
                f"{limits.per_key}",
                seen,
            )


def _check_rate(
    queue: _Queue, obj: JsonObject, limits: _Limits, new: list[JsonObject], seen: float
) -> Iterator[Violation]:
    """Judge the starts of the last period, by the operator's clock and by the recorder's.

    Either alone may be wrong: leaders have different clocks, and a recorder that catches up sees
    what happened over a minute within a second. A job that goes on after a wait does not start.
    """
    starts = [entry for entry in new if not flag(entry, "resumes")]
    if limits.rate is None or not starts:
        return
    for entry in starts:
        queue.grants.append((epoch_of(text(entry, "time")) or seen, seen))
    length = limits.period * (1 - RATE_TOLERANCE)
    newest = max(stamp for stamp, _ in queue.grants)
    while queue.grants and seen - queue.grants[0][1] > 2 * limits.period:
        queue.grants.popleft()
    by_stamp = sum(stamp > newest - length for stamp, _ in queue.grants)
    by_sight = sum(at > seen - length for _, at in queue.grants)
    if min(by_stamp, by_sight) > limits.rate:
        yield _of_queue(
            catalog.QUEUE_RATE,
            obj,
            f"{min(by_stamp, by_sight)} starts within {limits.period} s; rateLimit is "
            f"{limits.rate}",
            seen,
        )


def _read_limits(spec: JsonObject) -> _Limits:
    rate = child(spec, "rateLimit")
    return _Limits(
        opt_integer(spec, "maxConcurrency"),
        opt_integer(spec, "maxConcurrencyPerKey"),
        opt_integer(rate, "count"),
        opt_integer(rate, "periodSeconds") or 1,
    )


def _stay(entry: Mapping[str, object]) -> str:
    """Return which stay in the queue a reservation is for; never empty."""
    return f"{entry.get('queuedTime', '')} {entry.get('time', '')}"


def _version(obj: JsonObject) -> str:
    return text(child(obj, "metadata"), "resourceVersion")


def _broken(rule: catalog.AuditRule, job: JobVersion, message: str) -> Violation:
    return Violation(rule, subject_of(job), message, (job.version,), (job.seen,))


def _of_queue(rule: catalog.AuditRule, obj: JsonObject, message: str, seen: float) -> Violation:
    meta = child(obj, "metadata")
    subject = Subject(QUEUES, text(meta, "namespace"), text(meta, "name"), text(meta, "uid"))
    return Violation(rule, subject, message, (_version(obj),), (seen,))
