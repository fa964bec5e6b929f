"""Rules of several jobs at once: keys that only one may have, and runs of cron jobs."""

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from asyncjob.audit import catalog
from asyncjob.audit.catalog import Subject, Violation
from asyncjob.audit.job_version import JobVersion, epoch_of
from asyncjob.json_types import JsonObject, child, opt_text, text
from asyncjob.names import CRON_JOBS, JOBS

WITHDRAWAL_SECONDS: Final = 60.0
"""How long a submitter may need to take back a job whose key another one had first."""

POLICY_SECONDS: Final = 30.0
"""How long after a change of its policy a cron job may still create what it had reserved."""


_Key = tuple[str, str]
"""A namespace, and a key in it."""


def subject_of(job: JobVersion) -> Subject:
    """Return the job as the subject of a violation."""
    return Subject(JOBS, job.namespace, job.name, job.uid)


def _violation(rule: catalog.AuditRule, job: JobVersion, message: str) -> Violation:
    return Violation(rule, subject_of(job), message, (job.version,), (job.seen,))


@dataclass(frozen=True, slots=True)
class _Accepted:
    """A job that has its idempotency key, and since when."""

    since: float
    job: JobVersion


class KeyChecker:
    """Jobs with an idempotency key or a deduplication id that exist now."""

    def __init__(self) -> None:
        self._accepted: dict[_Key, dict[str, _Accepted]] = {}
        self._contested: deque[tuple[float, _Key]] = deque()
        """When a key got a second job, the earliest first; judged once that is long enough ago."""

        self._established: dict[_Key, dict[str, str]] = {}

    def on_version(self, was: JobVersion | None, now: JobVersion) -> Iterator[Violation]:
        """Take a version of a job; `was` is None if it is the first of it."""
        keys = now.keys
        if keys.idempotency:
            yield from self._on_key(now)
        if keys.deduplication:
            yield from self._on_deduplication(now, known=was is not None)

    def on_deleted(self, job: JobVersion) -> None:
        """Forget a job."""
        keys = job.keys
        for table, key in (
            (self._accepted, keys.idempotency),
            (self._established, keys.deduplication),
        ):
            holders = table.get((job.namespace, key))
            if holders is not None:
                holders.pop(job.uid, None)
                if not holders:
                    del table[job.namespace, key]

    def on_end(self, ended_at: float) -> Iterator[Violation]:
        """Judge what was still open when the history ended."""
        yield from self._judge_contested(ended_at)

    def _on_key(self, now: JobVersion) -> Iterator[Violation]:
        key = (now.namespace, now.keys.idempotency)
        holders = self._accepted.setdefault(key, {})
        if now.keys.accepted:
            known = holders.get(now.uid)
            if holders and known is None:
                self._contested.append((now.seen, key))
            holders[now.uid] = _Accepted(known.since if known else now.seen, now)
        else:
            holders.pop(now.uid, None)
        if not holders:
            del self._accepted[key]
        if self._contested:
            yield from self._judge_contested(now.seen)

    def _judge_contested(self, at: float) -> Iterator[Violation]:
        """Judge the keys for which a second job was accepted long enough ago."""
        while self._contested and at >= self._contested[0][0] + WITHDRAWAL_SECONDS:
            since, key = self._contested.popleft()
            holders = self._accepted.get(key, {}).values()
            jobs = [holder.job for holder in holders if holder.since <= since]
            if len(jobs) > 1:
                names = ", ".join(job.name for job in jobs)
                yield Violation(
                    catalog.KEY_IDEMPOTENCY,
                    subject_of(jobs[-1]),
                    f"idempotencyKey {key[1]} has {len(jobs)} accepted jobs: {names}",
                    tuple(job.version for job in jobs),
                    tuple(job.seen for job in jobs),
                )

    def _on_deduplication(self, now: JobVersion, *, known: bool) -> Iterator[Violation]:
        key = (now.namespace, now.keys.deduplication)
        holders = self._established.setdefault(key, {})
        if now.established:
            if holders and now.uid not in holders and known:
                others = ", ".join(holders.values())
                yield _violation(
                    catalog.KEY_DEDUPLICATION,
                    now,
                    f"{now.phase}{' and admitted' if now.admitted else ''} while {others} with the "
                    f"same deduplicationId {key[1]} is unfinished and has begun or is admitted",
                )
            holders[now.uid] = now.name
        else:
            holders.pop(now.uid, None)
        if not holders:
            del self._established[key]


@dataclass(slots=True)
class _Schedule:
    """What the rules need to know of an AsyncCronJob, and its unfinished runs."""

    exclusive: bool = False
    """Whether its policy is Forbid or Replace."""

    exclusive_since: float = 0.0
    settled: float = 0.0
    unfinished: dict[str, tuple[str, float]] = field(default_factory=dict)
    """UID of the job → its name and when it was first seen."""


class ScheduleChecker:
    """Cron jobs by UID, and the runs that each has had."""

    def __init__(self) -> None:
        self._schedules: defaultdict[str, _Schedule] = defaultdict(_Schedule)
        self._runs: dict[tuple[str, str], str] = {}

    def on_schedule(self, obj: JsonObject, seen: float) -> Iterator[Violation]:
        """Take a version of an AsyncCronJob."""
        meta, spec, status = child(obj, "metadata"), child(obj, "spec"), child(obj, "status")
        state = self._schedules[text(meta, "uid")]
        exclusive = text(spec, "concurrencyPolicy") in {"Forbid", "Replace"}
        if exclusive != state.exclusive:
            state.exclusive, state.exclusive_since = exclusive, seen
        settled = epoch_of(opt_text(status, "settledTime") or "") or 0.0
        if settled < state.settled:
            yield Violation(
                catalog.SCHEDULE_SETTLED,
                Subject(CRON_JOBS, text(meta, "namespace"), text(meta, "name"), text(meta, "uid")),
                f"settledTime went back by {state.settled - settled:g} s",
                (text(meta, "resourceVersion"),),
                (seen,),
            )
        state.settled = max(settled, state.settled)

    def on_schedule_deleted(self, obj: JsonObject) -> None:
        """Forget a cron job; its runs are remembered."""
        self._schedules.pop(text(child(obj, "metadata"), "uid"), None)

    def on_version(
        self, was: JobVersion | None, now: JobVersion, *, created: bool
    ) -> Iterator[Violation]:
        """Take a version of a job; `created`: its creation was seen."""
        run = now.run
        if run is None or not _is_name_of_run(now):
            return
        state = self._schedules[run.schedule_uid]
        if created and was is None:
            yield from self._check_once(now)
            yield from _check_overlap(state, now)
        if now.finished:
            state.unfinished.pop(now.uid, None)
        elif not now.deleting and now.uid not in state.unfinished:
            first_seen = now.seen if was is None else 0.0
            state.unfinished[now.uid] = (now.name, first_seen)
        elif now.deleting:
            state.unfinished.pop(now.uid, None)

    def on_deleted(self, job: JobVersion) -> None:
        """Forget that a job was unfinished; which run it was is remembered."""
        if job.run is not None and job.run.schedule_uid in self._schedules:
            self._schedules[job.run.schedule_uid].unfinished.pop(job.uid, None)

    def _check_once(self, now: JobVersion) -> Iterator[Violation]:
        run = now.run
        assert run is not None
        if run.backfill:  # a time whose job is gone is made up for again
            return
        which = f"trigger {run.trigger}" if run.trigger else run.time
        earlier = self._runs.setdefault((run.schedule_uid, which), now.uid)
        if earlier != now.uid:
            yield _violation(
                catalog.SCHEDULE_ONCE,
                now,
                f"a second job of cron job {run.cron_job} for {which}; the first was {earlier}",
            )


def _check_overlap(state: _Schedule, now: JobVersion) -> Iterator[Violation]:
    if not state.exclusive or now.seen < state.exclusive_since + POLICY_SECONDS:
        return
    others = [
        name for name, first_seen in state.unfinished.values() if first_seen > state.exclusive_since
    ]
    if others:
        yield _violation(
            catalog.SCHEDULE_OVERLAP, now, f"created while {', '.join(others)} is unfinished"
        )


def _is_name_of_run(job: JobVersion) -> bool:
    """Return whether the name is that of the run that its marks tell of.

    Labels can be changed later, by who may delete jobs; a name cannot.
    """
    run = job.run
    assert run is not None
    if run.trigger:
        return job.name.endswith(f"-t{run.trigger}")
    at = epoch_of(run.time)
    return at is not None and job.name.endswith(f"-{datetime.fromtimestamp(at, UTC):%Y%m%dt%H%Mz}")
