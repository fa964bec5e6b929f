"""Rules that need more than the history: the API server's audit log, or the workers' own record."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from asyncjob.audit import catalog
from asyncjob.audit.catalog import Broken, Subject, Violation
from asyncjob.audit.evidence import AuditedUser, AuditLog, HandlerRecord
from asyncjob.audit.job_rules import REPORTED, TAKEN_AWAY
from asyncjob.audit.job_version import JobVersion
from asyncjob.audit.recorded_object import digest_of_recorded
from asyncjob.json_types import JsonObject, child
from asyncjob.names import JOBS

_SILENT_ENDS: Final = frozenset({"LeaseExpired", "CrashBudgetExhausted"})
"""Reasons for which an attempt may end whose worker is alive and does not know."""

OPERATOR_ACCOUNT: Final = "asyncjob-operator"

SETTLING_SECONDS: Final = 10.0
"""How long before the end of a history something may be missing in it that is on its way."""


class EvidenceChecker:
    """Compares the history with what was given beside it; either may be missing."""

    def __init__(
        self,
        audit_log: AuditLog | None,
        handlers: HandlerRecord | None,
        *,
        tolerance: float,
        operator_users: frozenset[str],
    ) -> None:
        self._audit_log = audit_log
        self._handlers = handlers
        self._tolerance = tolerance
        self._operator_users = operator_users
        self._former_holders: set[str] = set()
        self.unjudged: Counter[str] = Counter()
        """What may be a violation and may be none, by rule."""

    def on_first(self, now: JobVersion) -> None:
        """Take the first version of a job."""
        if self._audit_log is not None:
            self._audit_log.creations.pop((now.namespace, now.name), None)
        self.on_claim(now)

    def on_claim(self, now: JobVersion) -> None:
        """Record that a version has a claim which was not seen before."""
        if now.holder_uid:
            self._former_holders.add(now.holder_uid)
        if self._handlers is not None:
            for run in self._handlers.of(now.uid, now.attempt):
                run.claimed = run.claimed or run.claim == now.claim

    def on_unclear_end(self, was: JobVersion) -> None:
        """Record that an attempt ended without its worker, or in a gap."""
        if self._handlers is not None:
            for run in self._handlers.of(was.uid, was.attempt):
                run.may_be_frozen = run.may_be_frozen or run.claim == was.claim

    def on_change(self, was: JobVersion, now: JobVersion, obj: JsonObject) -> Broken:
        """Judge two versions in a row."""
        if self._handlers is not None:
            if was.phase == "Running" and now.reason in _SILENT_ENDS:
                self.on_unclear_end(was)
            if now.claim != was.claim:
                yield from self._check_worker(now)
            if now.checkpoint != was.checkpoint and was.phase == "Running":
                yield from self._check_checkpoint(was, obj)
        if self._audit_log is not None:
            caller = self._audit_log.writer_of(now.order)
            if caller is not None:
                yield from self._check_writer(was, now, caller)
        if now.claim != was.claim:
            self.on_claim(now)

    def is_by_operator(self, job: JobVersion, at: float) -> bool | None:
        """Return whether the operator deleted a job about then; None if nothing tells."""
        if self._audit_log is None:
            return None
        user = self._audit_log.deleted_by(job.namespace, job.name, at)
        if user is None:
            return None
        return user in self._operator_users or user.endswith(f":{OPERATOR_ACCOUNT}")

    def on_end(self, complete_since: float, ended: float, namespace: str) -> Iterator[Violation]:
        """Judge what has to be in the history and is not.

        `complete_since` is when the newest list of jobs had ended, in epoch seconds.
        """
        within = (complete_since + self._tolerance, ended - SETTLING_SECONDS)
        if self._audit_log is not None:
            yield from self._missing_jobs(self._audit_log, within, namespace)
        if self._handlers is not None:
            yield from self._unclaimed_runs(self._handlers, within, namespace)
            for uid, earlier, later in self._handlers.overlapping(self._tolerance):
                if earlier.may_be_frozen:
                    self.unjudged[catalog.HANDLER_ALONE.id] += 1
                    continue
                yield Violation(
                    catalog.HANDLER_ALONE,
                    self._subject(self._handlers, uid),
                    f"{later.worker} began {earlier.ended - later.started:.1f} s before the "
                    f"handler of {earlier.worker} had ended",
                    times=(earlier.started, later.started, earlier.ended),
                )

    def _missing_jobs(
        self, log: AuditLog, within: tuple[float, float], namespace: str
    ) -> Iterator[Violation]:
        for (space, name), at in log.creations.items():
            if namespace in {space, "*"} and within[0] < at < within[1]:
                yield Violation(
                    catalog.JOB_ACCEPTED,
                    Subject(JOBS, space, name),
                    "its creation was accepted, and it was never seen",
                    times=(at,),
                )

    def _unclaimed_runs(
        self, handlers: HandlerRecord, within: tuple[float, float], namespace: str
    ) -> Iterator[Violation]:
        for (uid, attempt), runs in handlers.runs.items():
            for run in runs:
                known = self._subject(handlers, uid)
                if (
                    not run.claimed
                    and namespace in {known.namespace, "*"}
                    and within[0] < run.started < within[1]
                ):
                    yield Violation(
                        catalog.HANDLER_CLAIMED,
                        known,
                        f"{run.worker} ran a handler for attempt {attempt}, whose claim "
                        f"{run.claim} is not in the history",
                        times=(run.started,),
                    )

    @staticmethod
    def _subject(handlers: HandlerRecord, uid: str) -> Subject:
        namespace, name = handlers.names.get(uid, ("", uid))
        return Subject(JOBS, namespace, name, uid)

    def _check_worker(self, now: JobVersion) -> Broken:
        assert self._handlers is not None
        for run in self._handlers.of(now.uid, now.attempt):
            if run.claim == now.claim and now.lease and run.worker != now.lease[2]:
                message = f"{run.worker} ran the handler of a claim of {now.lease[2]}"
                yield catalog.HANDLER_CLAIMED, message

    def _check_checkpoint(self, was: JobVersion, obj: JsonObject) -> Broken:
        """Judge a checkpoint that was stored in an attempt, or as it ended."""
        assert self._handlers is not None
        status = child(obj, "status")
        if "checkpoint" not in status:
            return
        digest = digest_of_recorded(status["checkpoint"])
        for run in self._handlers.of(was.uid, was.attempt):
            if run.claim != was.claim:
                continue
            try:
                run.stored = run.checkpoints.index(digest, run.stored) + 1
            except ValueError:
                known = "was given before" if digest in run.checkpoints else "was never given"
                yield (
                    catalog.CHECKPOINT_ORDER,
                    f"the checkpoint stored in attempt {was.attempt} {known} by the handler, "
                    f"{run.stored} of {len(run.checkpoints)} being stored or replaced",
                )

    def _check_writer(self, was: JobVersion, now: JobVersion, caller: AuditedUser) -> Broken:
        """Judge who wrote a version, by the one before."""
        who = f"{caller.user}{f' in pod {caller.pod_uid}' if caller.pod_uid else ''}"
        if was.phase == "Running":
            yield from _check_end_of_attempt(was, now, caller, who)
        elif now.phase == "Running":
            if caller.pod_uid != now.holder_uid:
                yield catalog.FENCING_WRITER, f"claimed for pod {now.holder_uid} by {who}"
        elif caller.pod_uid and caller.pod_uid in self._former_holders:
            message = f"written by {who}, a worker that does not hold it, while {was.phase}"
            yield catalog.FENCING_WRITER, message


def _check_end_of_attempt(
    was: JobVersion, now: JobVersion, caller: AuditedUser, who: str
) -> Broken:
    """Judge who wrote the status of a running job, or ended its attempt."""
    if caller.pod_uid == was.holder_uid:
        if now.reason in TAKEN_AWAY:
            yield catalog.FENCING_WRITER, f"its own holder found {now.reason}"
    elif now.phase == "Running":
        if _work_of(was) != _work_of(now):
            message = f"the status changed by {who} while pod {was.holder_uid} held it"
            yield catalog.FENCING_WRITER, message
    elif now.phase == "Succeeded" or now.reason in REPORTED:
        message = f"{now.phase} ({now.reason or 'no reason'}) by {who}, not by its holder"
        yield catalog.FENCING_WRITER, message


def _work_of(job: JobVersion) -> tuple[object, ...]:
    """Return what of a running job is its holder's alone."""
    return (job.lease, job.renewals, job.checkpoint, job.progress, job.steady, job.admitted)
