"""Reads a history and judges it, line by line.

Memory grows with the jobs that exist at one time, not with the versions: of each only the newest is
kept, as a `JobVersion`.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from asyncjob.audit import catalog, job_rules
from asyncjob.audit.arrays.array_chunks import ArrayChecker
from asyncjob.audit.catalog import Broken, Violation
from asyncjob.audit.evidence import AuditLog, HandlerRecord
from asyncjob.audit.evidence_rules import EvidenceChecker
from asyncjob.audit.history_file import HistoryLine, NotAHistoryError, RecordingScope, scope_of
from asyncjob.audit.job_groups import KeyChecker, ScheduleChecker, subject_of
from asyncjob.audit.job_version import JobVersion, cached_epoch_of, epoch_of, read_job_version
from asyncjob.audit.queue_rules import QueueChecker
from asyncjob.audit.retention_rules import Deletion, RetentionChecker, RetentionFloors
from asyncjob.json_types import JsonObject, child, text
from asyncjob.names import ARRAYS, CRON_JOBS, JOBS, QUEUES

MAX_KEPT: Final = 100
"""Violations kept of each rule; the others are counted."""

_RUNNING: Final = "Running"


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What the checker has to know beforehand. Times are in seconds."""

    clock_tolerance: float = 2.0
    """How far clocks may disagree: of API servers, and of workers' machines."""

    floors: RetentionFloors = field(default_factory=RetentionFloors)
    manual_deletions: bool = True
    """Whether people may have deleted jobs."""

    operator_users: frozenset[str] = frozenset()
    """Users of the audit log that are the operator, beside any account `asyncjob-operator`."""


@dataclass(slots=True)
class Gap:
    """Where versions may be missing: after the last that was seen, until a list. Epoch seconds."""

    resource: str
    since: float
    until: float
    changed: int = 0
    """Jobs that were there before and changed in it: less of the change is judged."""

    created: int = 0
    """Jobs of which only a later version was seen."""

    gone: int = 0
    """Jobs that are gone since, of which the end was not seen."""


@dataclass(slots=True)
class HistoryReport:
    """What was read, and what is wrong with it. Times are epoch seconds."""

    versions: int = 0
    jobs: int = 0
    arrays: int = 0
    gaps: list[Gap] = field(default_factory=list)
    complete: bool = False
    """Whether the recording was ended in good order."""

    namespace: str = ""
    began: float = 0.0
    ended: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    """Violations by rule."""

    violations: list[Violation] = field(default_factory=list)
    """The first of each rule."""

    unjudged: Counter[str] = field(default_factory=Counter)
    """By rule, what only further evidence can tell to be a violation."""

    ends: Counter[str] = field(default_factory=Counter)
    """Attempts by how they ended: the reason, or Succeeded; those that began as `Claimed`."""


@dataclass(slots=True)
class _JobState:
    """The newest version of a job, and what is remembered of older ones."""

    newest: JobVersion
    listed_in: int
    """Number of the list that it was last in, or that it was created after."""

    claims: tuple[int, ...]
    """Hashes of all claims seen."""

    renewed: float = 0.0
    """When the API server took the claim or the last renewal; 0: not known."""


class HistoryChecker:
    """Judges one history; `audit_log` and `handlers` are further evidence."""

    def __init__(
        self,
        options: CheckOptions,
        audit_log: AuditLog | None = None,
        handlers: HandlerRecord | None = None,
    ) -> None:
        self._options = options
        self._report = HistoryReport()
        self._jobs: dict[str, _JobState] = {}
        self._lists: Counter[str] = Counter()
        self._scope: RecordingScope | None = None
        self._last_seen: dict[str, float] = {}
        self._listing: set[str] = set()
        self._gap: Gap | None = None
        self._complete_since = 0.0
        self._jobs_until = math.inf
        self._keys = KeyChecker()
        self._schedules = ScheduleChecker()
        self._queues = QueueChecker()
        self._arrays = ArrayChecker()
        self._evidence = EvidenceChecker(
            audit_log,
            handlers,
            tolerance=options.clock_tolerance,
            operator_users=options.operator_users,
        )
        self._retention = RetentionChecker(
            options.floors, options.clock_tolerance, self._is_by_operator
        )

    def check(self, lines: Iterable[JsonObject]) -> HistoryReport:
        """Return the verdict on the lines of a history file; raises NotAHistoryError."""
        for line in lines:
            self._take_line(line)
        report = self._report
        ended = min(report.ended, self._jobs_until)
        self._add(self._keys.on_end(ended))
        self._add(self._queues.on_end(ended))
        self._add(self._arrays.on_end(ended))
        report.arrays = self._arrays.seen
        self._add(self._evidence.on_end(self._complete_since, ended, report.namespace))
        report.unjudged = self._retention.unjudged + self._evidence.unjudged
        return report

    def _take_line(self, line: JsonObject) -> None:
        report = self._report
        at = epoch_of(text(line, "time")) or report.ended
        report.ended = max(report.ended, at)
        match text(line, "line"):
            case HistoryLine.VERSION:
                report.versions += 1
                self._last_seen[text(line, "resource")] = at
                self._take_version(line, at)
            case HistoryLine.START:
                self._take_start(line, at)
            case HistoryLine.LIST:
                self._begin_list(text(line, "resource"), at)
            case HistoryLine.LIST_END:
                self._end_list(text(line, "resource"), at)
            case HistoryLine.END:
                report.complete = True
                self._take_end(child(line, "behind"), at)

    def _take_start(self, line: JsonObject, at: float) -> None:
        report, scope = self._report, scope_of(line)
        if self._scope not in {None, scope}:
            raise NotAHistoryError(
                f"recordings of different scope in one history: {self._scope}, then {scope}; check "
                "each alone"
            )
        self._scope = scope
        report.began = report.began or at
        report.namespace = scope.namespace
        report.complete = False
        self._jobs_until = math.inf
        self._listing.clear()
        self._gap = None

    def _take_end(self, behind: JsonObject, at: float) -> None:
        """Record that watches were cut at the end: what they had still to show is a gap."""
        for resource in behind:
            since = epoch_of(text(behind, resource)) or at
            self._report.gaps.append(Gap(resource, since, at))
            if resource == JOBS:
                self._jobs_until = since

    def _take_version(self, line: JsonObject, at: float) -> None:
        event, obj, resource = text(line, "event"), child(line, "object"), text(line, "resource")
        if resource == JOBS:
            written = text(line, "written")
            self._take_job(obj, event, at, cached_epoch_of(written) if written else 0.0)
        elif resource == QUEUES:
            self._retention.on_queue(obj, event=event)
            self._add(self._queues.on_queue(obj, at, event=event))
        elif resource == ARRAYS:
            self._add(self._arrays.on_array(obj, at, event=event))
        elif resource == CRON_JOBS and event == "DELETED":
            self._schedules.on_schedule_deleted(obj)
        elif resource == CRON_JOBS:
            self._add(self._schedules.on_schedule(obj, at))

    def _begin_list(self, resource: str, at: float) -> None:
        self._lists[resource] += 1
        began_before = resource in self._listing  # it broke off, and is begun again
        self._listing.add(resource)
        if resource in self._last_seen and not began_before:
            gap = Gap(resource, self._last_seen[resource], at)
            self._report.gaps.append(gap)
            if resource == JOBS:
                self._gap = gap
        if resource == JOBS:
            self._queues.jobs_complete = False
        elif resource == QUEUES:
            self._queues.begin_list()
        elif resource == ARRAYS:
            self._arrays.begin_list()

    def _end_list(self, resource: str, at: float) -> None:
        self._listing.discard(resource)
        self._last_seen[resource] = at
        if resource == QUEUES:
            self._queues.end_list(at)
        elif resource == ARRAYS:
            self._arrays.end_list(at)
        if resource != JOBS:
            return
        gone = [key for key, job in self._jobs.items() if job.listed_in != self._lists[JOBS]]
        for key in gone:
            self._delete(key, Deletion(at, in_gap=True))
        if self._gap is not None:
            self._gap.gone += len(gone)
            self._gap.until = at
            self._gap = None
        self._queues.jobs_complete = True
        self._complete_since = at

    def _take_job(self, obj: JsonObject, event: str, at: float, written: float) -> None:
        now = read_job_version(obj, at, written)
        key = f"{now.namespace}/{now.name}"
        state = self._jobs.get(key)
        if state is not None and state.newest.uid != now.uid:
            self._take_loss_of_name(key, now, listed=event == "LISTED")
            state = None
        if event == "DELETED":
            if state is not None:
                self._delete(key, Deletion(at))
        elif state is None:
            self._take_first(key, now, created=event == "ADDED")
        elif event == "LISTED":
            state.listed_in = self._lists[JOBS]
            if now.version != state.newest.version:
                self._take_across_gap(state, now)
        else:
            self._take_next(state, now, obj)

    def _take_loss_of_name(self, key: str, now: JobVersion, *, listed: bool) -> None:
        """Record that a job is gone, because another one has its name."""
        if not listed:
            message = f"another object of this name exists, {self._jobs[key].newest.uid}"
            self._broken([(catalog.VERSION_ORDER, message)], now)
        self._delete(key, Deletion(now.seen, in_gap=True))
        if self._gap is not None:
            self._gap.gone += 1

    def _take_first(self, key: str, now: JobVersion, *, created: bool) -> None:
        self._report.jobs += 1
        claims = (hash(now.claim),) if now.claim else ()
        self._jobs[key] = _JobState(now, self._lists[JOBS], claims)
        if created:
            self._broken(job_rules.check_created(now), now)
        elif self._gap is not None:
            self._gap.created += 1
        self._broken(job_rules.check_version(now), now)
        self._evidence.on_first(now)
        self._take_in_groups(None, now, created=created)
        if now.array_uid:
            self._add(self._arrays.on_chunk(None, now, created=created))
        self._queues.on_version(None, now)

    def _take_across_gap(self, state: _JobState, now: JobVersion) -> None:
        was, state.newest = state.newest, now
        if self._gap is not None:
            self._gap.changed += 1
        self._broken(job_rules.check_version(now), now)
        self._broken(job_rules.check_across_gap(was, now), now, was)
        state.renewed = 0.0
        if now.claim != was.claim:
            state.claims = (*state.claims, hash(now.claim))
            self._evidence.on_claim(now)
        if was.phase == _RUNNING and now.claim != was.claim:
            self._evidence.on_unclear_end(was)
        self._take_in_groups(was, now, created=False)
        if was.array_uid or now.array_uid:
            self._add(self._arrays.on_chunk(was, now, created=False, exact=False))
        self._queues.on_version(was, now, exact=False)

    def _take_next(self, state: _JobState, now: JobVersion, obj: JsonObject) -> None:
        was = state.newest
        if now.order and now.order <= was.order:
            message = f"resourceVersion {now.version} after {was.version}"
            self._broken([(catalog.VERSION_ORDER, message)], now, was)
            return
        state.newest = now
        self._broken(job_rules.check_version(now), now, was)
        self._broken(job_rules.check_change(was, now), now, was)
        if was.phase != now.phase:
            self._broken(job_rules.check_policy(was, now, obj), now, was)
            tolerance = self._options.clock_tolerance
            self._broken(job_rules.check_deadline(was, now, tolerance), now, was)
            if now.phase == _RUNNING:
                self._report.ends["Claimed"] += 1
            elif was.phase == _RUNNING:
                self._report.ends[now.reason or now.phase] += 1
        if now.claim != was.claim:
            if hash(now.claim) in state.claims:
                message = f"attempt {now.attempt} has the claim {now.claim} of an earlier one"
                self._broken([(catalog.CLAIM_UNIQUE, message)], now, was)
            state.claims = (*state.claims, hash(now.claim))
        self._broken(self._check_takeover(state, was, now), now, was)
        self._broken(self._evidence.on_change(was, now, obj), now, was)
        self._take_in_groups(was, now, created=False)
        if was.array_uid or now.array_uid:
            self._add(self._arrays.on_chunk(was, now, created=False))
        self._queues.on_version(was, now)

    def _take_in_groups(self, was: JobVersion | None, now: JobVersion, *, created: bool) -> None:
        if now.keys.idempotency or now.keys.deduplication:
            self._add(self._keys.on_version(was, now))
        if now.run is not None:
            self._add(self._schedules.on_version(was, now, created=created))
        self._retention.on_version(was, now)

    def _delete(self, key: str, deletion: Deletion) -> None:
        job = self._jobs.pop(key).newest
        self._add(self._retention.on_deleted(job, deletion))
        self._keys.on_deleted(job)
        self._schedules.on_deleted(job)
        if job.array_uid:
            self._add(self._arrays.on_chunk_deleted(job, deletion.at, in_gap=deletion.in_gap))
        self._queues.on_deleted(job)

    def _is_by_operator(self, job: JobVersion, at: float) -> bool | None:
        return (
            True if not self._options.manual_deletions else self._evidence.is_by_operator(job, at)
        )

    def _check_takeover(self, state: _JobState, was: JobVersion, now: JobVersion) -> Broken:
        """Judge when a lease was found expired, by the API server's times, in whole seconds."""
        if now.phase == _RUNNING:
            if now.claim != was.claim or now.renewals != was.renewals:
                state.renewed = now.written
            return
        if now.reason != "LeaseExpired" or not (was.lease and state.renewed and now.written):
            return
        silent, duration = now.written - state.renewed, was.lease[4]
        if isinstance(duration, int) and silent + self._options.clock_tolerance < duration:
            yield (
                catalog.LEASE_TAKEOVER,
                f"taken from {was.lease[2]} {silent:g} s after its last renewal; the lease lasts "
                f"{duration} s",
            )

    def _broken(
        self,
        found: Broken | Iterable[tuple[catalog.AuditRule, str]],
        now: JobVersion,
        was: JobVersion | None = None,
    ) -> None:
        """Add what is wrong with a version of a job, or with it as the next after another."""
        for rule, message in found:
            pair = (now,) if was is None else (was, now)
            versions = tuple(one.version for one in pair)
            times = tuple(one.seen for one in pair)
            self._add([Violation(rule, subject_of(now), message, versions, times)])

    def _add(self, violations: Iterable[Violation]) -> None:
        report = self._report
        for violation in violations:
            report.counts[violation.rule.id] += 1
            if report.counts[violation.rule.id] <= MAX_KEPT:
                report.violations.append(violation)
