"""The rules that a history is judged by, and what it means to break one.

The reference pages are made from this list. The modules beside it find what breaks them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

DOCUMENTED_IN: Final = "docs/reference/errors/rules-of-the-audit.md"


class Evidence(StrEnum):
    """What a rule is judged by."""

    HISTORY = "history"
    """The recorded versions."""

    AUDIT_LOG = "audit log"
    """The API server's audit log, given with `--audit-log`."""

    HANDLER_RECORD = "handler record"
    """What workers record with `--handler-record`."""


@dataclass(frozen=True, slots=True)
class AuditRule:
    """One rule: what holds in every history."""

    id: str
    description: str
    evidence: Evidence = Evidence.HISTORY

    @property
    def documented(self) -> str:
        """Where the rule is explained."""
        return f"{DOCUMENTED_IN}#{self.id}"


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that a violation is about."""

    resource: str
    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that was broken, and between which versions of what."""

    rule: AuditRule
    subject: Subject
    message: str
    versions: tuple[str, ...] = ()
    """The resourceVersions, the earlier first."""

    times: tuple[float, ...] = ()
    """When the recorder saw them, in epoch seconds."""


Broken = Iterator[tuple[AuditRule, str]]
"""Rules that are broken and, in words, how."""

VERSION_ORDER: Final = AuditRule(
    "version.order",
    "Each version of an object has a higher resourceVersion than the one before, and a name goes "
    "to another object only after a deletion.",
)
JOB_CREATED: Final = AuditRule(
    "job.created", "A new job is Queued, without a claim, and all its counters are 0."
)
JOB_TRANSITION: Final = AuditRule(
    "job.transition", "The phase changes only by the transitions that the life of a job has."
)
JOB_REASON: Final = AuditRule(
    "job.reason", "A transition has one of its own reasons, which stays until the next transition."
)
JOB_SPEC: Final = AuditRule(
    "job.spec",
    "Only the control fields of a spec change; cancel is never taken back, redrive and rerun never "
    "shrink.",
)
JOB_GATE: Final = AuditRule(
    "job.gate",
    "No job is claimed while it is suspended, after its cancellation was requested, or before it "
    "was admitted if it has to be.",
)
JOB_POLICY: Final = AuditRule(
    "job.policy",
    "The policy of an attempt is what the spec says, and there are no more retries than it allows.",
)
JOB_DEADLINE: Final = AuditRule(
    "job.deadline",
    "A job with deadlineSeconds is cancelled for its deadline only once that has passed since its "
    "creation, by the API server's clock.",
)
JOB_COUNTERS: Final = AuditRule(
    "job.counters",
    "Retries, crashes and releases grow one at a time, when an attempt ends; a redrive, and only "
    "that, sets them to 0; redrives and reruns never shrink.",
)
JOB_HISTORY: Final = AuditRule(
    "job.history",
    "Each change of phase but a claim adds one entry to status.history, and no entry changes.",
)
JOB_FINISHED: Final = AuditRule(
    "job.finished",
    "A finished job has its completion time and condition, an unfinished one has neither, and the "
    "status of a finished job no longer changes, except for reruns.",
)
LEASE_HOLDER: Final = AuditRule(
    "lease.holder",
    "A job has a lease if, and only if, it is Running; one lease has one holder from claim to end, "
    "and its renewals never shrink.",
)
LEASE_TAKEOVER: Final = AuditRule(
    "lease.takeover",
    "A lease is found expired only after its whole duration without a renewal, by the API server's "
    "clock.",
)
CLAIM_ATTEMPT_NUMBER: Final = AuditRule(
    "claim.attempt", "Each claim raises attempt by one; nothing else changes it."
)
CLAIM_UNIQUE: Final = AuditRule(
    "claim.unique", "Each claim has an id that the job never had; nothing else changes it."
)
FENCING_EFFECT: Final = AuditRule(
    "fencing.effect",
    "Progress and checkpoint change only in an attempt that holds the job, and stay as they are "
    "when it is taken from its worker; a result comes with success, and with nothing else.",
)
FENCING_WRITER: Final = AuditRule(
    "fencing.writer",
    "While a job runs, its holder alone writes its status; others can only end the attempt, for "
    "reasons of the operator's, or acknowledge a rerun. A claim is made by the pod it names, and "
    "who once held a job does not write it when it waits or has finished.",
    Evidence.AUDIT_LOG,
)
KEY_IDEMPOTENCY: Final = AuditRule(
    "key.idempotency", "Of the jobs submitted under one idempotency key only one stays accepted."
)
KEY_DEDUPLICATION: Final = AuditRule(
    "key.deduplication",
    "Of the unfinished jobs with one deduplicationId at most one has begun or is admitted.",
)
QUEUE_RESERVATIONS: Final = AuditRule(
    "queue.reservations",
    "No reservation is granted beyond maxConcurrency or maxConcurrencyPerKey.",
)
QUEUE_ADMISSION: Final = AuditRule(
    "queue.admission",
    "A job of a queue with limits is admitted with a reservation, and claimed only once admitted.",
)
QUEUE_CONCURRENCY: Final = AuditRule(
    "queue.concurrency",
    "No claim has more jobs of a queue, or of a concurrency key, run than its limit allows.",
)
QUEUE_RATE: Final = AuditRule(
    "queue.rate", "In no period are more starts granted than rateLimit allows."
)
SCHEDULE_ONCE: Final = AuditRule(
    "schedule.once",
    "Each scheduled time of a cron job, and each trigger, has one job, named after it.",
)
SCHEDULE_OVERLAP: Final = AuditRule(
    "schedule.overlap",
    "Under Forbid and Replace no run begins while another is unfinished.",
)
SCHEDULE_SETTLED: Final = AuditRule(
    "schedule.settled", "settledTime of a cron job never goes back."
)
RETENTION_FLOOR: Final = AuditRule(
    "retention.floor",
    "The operator deletes no finished job before the minimum age, and none with a key before the "
    "deduplication window is over. Chunks of arrays are exempt.",
)
JOB_KEPT: Final = AuditRule(
    "job.kept", "The operator deletes no unfinished job, but for chunks of arrays."
)
JOB_ACCEPTED: Final = AuditRule(
    "job.accepted",
    "Every job whose creation the API server accepted is in the history.",
    Evidence.AUDIT_LOG,
)
HANDLER_CLAIMED: Final = AuditRule(
    "handler.claimed",
    "A handler begins only for a claim that its worker has made.",
    Evidence.HANDLER_RECORD,
)
HANDLER_ALONE: Final = AuditRule(
    "handler.alone",
    "No two handlers of one job run at once. Where the lease of the first had expired this is "
    "counted and not judged: a process that was frozen cannot stop in time.",
    Evidence.HANDLER_RECORD,
)
CHECKPOINT_ORDER: Final = AuditRule(
    "checkpoint.order",
    "The checkpoints of an attempt are stored in the order in which its handler gave them, and no "
    "others.",
    Evidence.HANDLER_RECORD,
)

ARRAY_CREATED: Final = AuditRule(
    "array.created", "A new array is Pending, and nothing of it is cut or counted."
)
ARRAY_TRANSITION: Final = AuditRule(
    "array.transition",
    "The phase of an array changes only from Pending to Running, from either to an end, and by a "
    "redrive from Failed to Running, or to Pending if no chunk was cut; none succeeds that has not "
    "run its items.",
)
ARRAY_SPEC: Final = AuditRule(
    "array.spec",
    "Only the control fields of an array's spec change; cancel is never taken back, redrive never "
    "shrinks.",
)
ARRAY_COUNTS: Final = AuditRule(
    "array.counts",
    "next, succeeded, generation and redrives never shrink, failed only by a redrive, and total "
    "never changes once it is known.",
)
ARRAY_ITEMS: Final = AuditRule(
    "array.items",
    "Each item is in one place: done, failed, in an open chunk, to be run again, or not cut yet; "
    "and the counts add up to total.",
)
ARRAY_ONCE: Final = AuditRule(
    "array.once",
    "An item counts once, as done or as failed, by the write that takes its chunk off the list; "
    "one that items.skip names counts as done once next passes it; only a redrive takes failed "
    "ones back.",
)
ARRAY_FINAL: Final = AuditRule(
    "array.final",
    "An array that has ended has its completion time and condition and no open chunk, another one "
    "neither time nor condition; its status no longer changes, but by the redrive of a failed one.",
)
ARRAY_RESERVED: Final = AuditRule(
    "array.reserved",
    "A chunk is listed in its array before it is created, and never created again once it is off "
    "the list; generation counts them, and the items of one never change.",
)
ARRAY_CHUNK_ENDED: Final = AuditRule(
    "array.chunk-ended", "Items count only once their chunk has ended."
)
ARRAY_PARALLELISM: Final = AuditRule(
    "array.parallelism",
    "At no time are there more chunks of an array than twice its parallelism.",
)
ARRAY_LEFTOVER: Final = AuditRule(
    "array.leftover",
    "No chunk is there ten minutes after its array has ended or is gone, beside the time it has to "
    "stop.",
)

AUDIT_RULES: Final = (
    VERSION_ORDER,
    JOB_CREATED,
    JOB_TRANSITION,
    JOB_REASON,
    JOB_SPEC,
    JOB_GATE,
    JOB_POLICY,
    JOB_DEADLINE,
    JOB_COUNTERS,
    JOB_HISTORY,
    JOB_FINISHED,
    JOB_KEPT,
    JOB_ACCEPTED,
    LEASE_HOLDER,
    LEASE_TAKEOVER,
    CLAIM_ATTEMPT_NUMBER,
    CLAIM_UNIQUE,
    FENCING_EFFECT,
    FENCING_WRITER,
    CHECKPOINT_ORDER,
    HANDLER_CLAIMED,
    HANDLER_ALONE,
    KEY_IDEMPOTENCY,
    KEY_DEDUPLICATION,
    QUEUE_RESERVATIONS,
    QUEUE_ADMISSION,
    QUEUE_CONCURRENCY,
    QUEUE_RATE,
    SCHEDULE_ONCE,
    SCHEDULE_OVERLAP,
    SCHEDULE_SETTLED,
    RETENTION_FLOOR,
    ARRAY_CREATED,
    ARRAY_TRANSITION,
    ARRAY_SPEC,
    ARRAY_COUNTS,
    ARRAY_ITEMS,
    ARRAY_ONCE,
    ARRAY_FINAL,
    ARRAY_RESERVED,
    ARRAY_CHUNK_ENDED,
    ARRAY_PARALLELISM,
    ARRAY_LEFTOVER,
)
"""All rules, in the order of the reference."""
