"""`JobVersion`: one version of a job, cut down to what the rules compare.

A history of 100,000 jobs has one of these for each job in memory. So free JSON and all that is only
compared for being the same is kept as a hash.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from sys import intern
from typing import Final

from asyncjob.extras import needs
from asyncjob.json_types import Json, JsonObject, as_object, child, flag, integer, items, text
from asyncjob.names import (
    ARRAY_LABEL,
    BACKFILL_LABEL,
    CONTENT_ANNOTATION,
    CRON_JOB_LABEL,
    CRON_JOB_UID_LABEL,
    DEDUPLICATION_LABEL,
    DEFAULT_QUEUE,
    IDEMPOTENCY_LABEL,
    SCHEDULED_TIME_ANNOTATION,
    TRIGGER_ANNOTATION,
)

with needs("cli"):
    import orjson

CONTROL_FIELDS: Final = frozenset(
    {"cancel", "cancelCascade", "suspend", "redrive", "rerun", "priority", "signals"}
)
GATE_FIELDS: Final = ("notBefore", "notAfter", "dependsOn", "deduplicationId")
FINISHED: Final = frozenset({"Succeeded", "DeadLetter", "Cancelled"})

_CHUNK_TYPES: Final = ("/items", "/index", "/store")

_LEASE_FIELDS: Final = ("holder", "holderUID", "worker", "acquireTime", "durationSeconds")
_TOO_DEEP: Final = "nested too deeply"
STEADY_FIELDS: Final = ("effective", "error", "startTime", "firstStartTime", "result", "resultRef")
"""Fields of the status that change only with the phase."""


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """Which run of which cron job a job is, by its labels and annotations."""

    cron_job: str
    schedule_uid: str
    time: str
    trigger: str
    backfill: bool


@dataclass(frozen=True, slots=True)
class JobKeys:
    """What makes a job the only one of its kind; empty where the job has no such key."""

    idempotency: str = ""
    accepted: bool = False
    """Whether it was submitted under its key, and not taken back."""

    deduplication: str = ""


NO_KEYS: Final = JobKeys()


@dataclass(frozen=True, slots=True)
class JobVersion:
    """One version of a job. Hashes stand for values that are compared, times are epoch seconds."""

    namespace: str
    name: str
    uid: str
    version: str
    order: int
    """The resourceVersion as a number, by which versions of all resources are ordered; 0: none."""

    seen: float
    """When the recorder saw it."""

    written: float
    """When the API server took the last write of its status, in whole seconds; 0: not known."""

    deleting: bool
    queue: str
    concurrency_key: str
    keys: JobKeys
    run: ScheduledRun | None
    array_uid: str
    """UID of the array that it is a chunk of; empty for any other job."""

    is_item_chunk: bool
    """Whether it is of a type that only chunks have; a label can be given to any job."""

    fixed: int
    """All of the spec that must not change."""

    cancel: bool
    suspend: bool
    redrive: int
    rerun: int
    gated: bool
    deadline: float
    """When its `deadlineSeconds` have passed; 0: never, or a `notAfter` may end it before."""

    phase: str
    reason: str
    attempt: int
    claim: str
    retries: int
    crashes: int
    releases: int
    parks: int
    redrives: int
    reruns: int
    admitted: bool
    lease: tuple[Json, ...]
    """Holder, holder's UID, worker, time of acquisition and duration; empty without a lease."""

    renewals: int
    checkpoint: int
    progress: int
    has_result: bool
    steady: tuple[int, ...]
    """The fields of `STEADY_FIELDS`."""

    frozen: int
    """All of the status but reruns, of a finished job; else 0."""

    completed_at: float
    has_completion: bool
    has_retry_delay: bool
    conditions: tuple[str, ...]
    history: tuple[int, ...]
    history_omitted: int
    last_entry: str
    """Phase of the newest entry of the history."""

    @property
    def is_chunk(self) -> bool:
        """Whether it is a chunk of an array, which is deleted once its items are counted."""
        return bool(self.array_uid)

    @property
    def finished(self) -> bool:
        """Whether nothing more happens to it without a person."""
        return self.phase in FINISHED

    @property
    def established(self) -> bool:
        """Whether it is unfinished and has begun, or may begin at any moment."""
        if self.phase in FINISHED or self.deleting:
            return False
        begun = self.retries or self.crashes or self.releases or self.parks
        return self.phase == "Running" or self.admitted or bool(begun)

    @property
    def holder_uid(self) -> str:
        """UID of the pod that holds it; empty where none does."""
        return str(self.lease[1]) if self.lease else ""


def read_job_version(obj: JsonObject, seen: float, written: float) -> JobVersion:
    """Return what the rules compare of a job as it was recorded."""
    meta, spec, status = child(obj, "metadata"), child(obj, "spec"), child(obj, "status")
    phase = intern(text(status, "phase", "Queued"))
    lease = status.get("lease")
    history = items(status, "history")
    version = text(meta, "resourceVersion")
    return JobVersion(
        namespace=intern(text(meta, "namespace")),
        name=text(meta, "name"),
        uid=text(meta, "uid"),
        version=version,
        order=order_of(version),
        seen=seen,
        written=written,
        deleting="deletionTimestamp" in meta,
        queue=intern(text(spec, "queue", DEFAULT_QUEUE)),
        concurrency_key=text(spec, "concurrencyKey"),
        keys=_read_keys(meta, spec),
        run=_read_run(meta),
        array_uid=intern(text(child(meta, "labels"), ARRAY_LABEL)),
        is_item_chunk=text(spec, "type").endswith(_CHUNK_TYPES),
        fixed=hash_of({name: value for name, value in spec.items() if name not in CONTROL_FIELDS}),
        cancel=flag(spec, "cancel"),
        suspend=flag(spec, "suspend"),
        redrive=integer(spec, "redrive"),
        rerun=integer(spec, "rerun"),
        gated=any(spec.get(name) for name in GATE_FIELDS),
        deadline=_read_deadline(meta, spec, status),
        phase=phase,
        reason=intern(text(status, "reason")),
        attempt=integer(status, "attempt"),
        claim=text(status, "claim"),
        retries=integer(status, "retries"),
        crashes=integer(status, "crashes"),
        releases=integer(status, "releases"),
        parks=integer(status, "parks"),
        redrives=integer(status, "redrives"),
        reruns=integer(status, "reruns"),
        admitted=flag(status, "admitted"),
        lease=tuple(as_object(lease).get(name) for name in _LEASE_FIELDS) if lease else (),
        renewals=integer(as_object(lease), "renewals"),
        checkpoint=_hash_if_there(status, "checkpoint"),
        progress=_hash_if_there(status, "progress"),
        has_result="result" in status or "resultRef" in status,
        steady=tuple(_hash_if_there(status, name) for name in STEADY_FIELDS),
        frozen=hash_of({**status, "reruns": 0}) if phase in FINISHED else 0,
        completed_at=epoch_of(text(status, "completionTime")) or 0.0,
        has_completion="completionTime" in status,
        has_retry_delay="retryDelaySeconds" in status,
        conditions=tuple(intern(text(as_object(item), "type")) for item in _conditions(status)),
        history=tuple(map(hash_of, history)),
        history_omitted=integer(status, "historyOmitted"),
        last_entry=intern(text(as_object(history[-1]), "phase")) if history else "",
    )


def _conditions(status: JsonObject) -> Sequence[Json]:
    return items(status, "conditions")


_MAX_ORDER_DIGITS: Final = 20
"""Digits of 64 bits. Python refuses to read numbers of thousands of digits."""


def order_of(version: str) -> int:
    """Return a resourceVersion as a number; 0 if it is none, and tells nothing of the order."""
    return int(version) if version.isdecimal() and len(version) <= _MAX_ORDER_DIGITS else 0


def hash_of(value: Json) -> int:
    """Return what is the same for equal values, whatever the order of their fields.

    Values too deep to be written count as equal, as they do in what is recorded.
    """
    try:
        return hash(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
    except orjson.JSONEncodeError:
        return hash(_TOO_DEEP)


def _hash_if_there(obj: JsonObject, name: str) -> int:
    return hash_of(obj[name]) if name in obj else 0


def epoch_of(text_: str) -> float | None:
    """Return RFC 3339 text as epoch seconds, None where it tells no time that UTC has."""
    try:
        moment = datetime.fromisoformat(text_.upper())
        return (moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=4096)
def cached_epoch_of(text_: str) -> float:
    """Return the same for times in whole seconds, which many versions share; 0 for none."""
    return epoch_of(text_) or 0.0


def _read_keys(meta: JsonObject, spec: JsonObject) -> JobKeys:
    idempotency, deduplication = text(spec, "idempotencyKey"), text(spec, "deduplicationId")
    if not (idempotency or deduplication):
        return NO_KEYS
    labels, notes = child(meta, "labels"), child(meta, "annotations")
    return JobKeys(
        idempotency,
        bool(idempotency) and CONTENT_ANNOTATION in notes and not _is_withdrawn(labels),
        deduplication,
    )


def _is_withdrawn(labels: Mapping[str, Json]) -> bool:
    """Return whether its submitter took it back, because another was quicker under its key."""
    return DEDUPLICATION_LABEL in labels and IDEMPOTENCY_LABEL not in labels


def _read_deadline(meta: JsonObject, spec: JsonObject, status: JsonObject) -> float:
    """Return when the job's deadline passes; 0 where a `notAfter` may end it sooner, too."""
    seconds, created = integer(spec, "deadlineSeconds"), text(meta, "creationTimestamp")
    may_be_late_to_start = "notAfter" in spec and not integer(status, "attempt")
    if not seconds or may_be_late_to_start:
        return 0.0
    begun = cached_epoch_of(created)
    return begun + seconds if begun else 0.0


def _read_run(meta: JsonObject) -> ScheduledRun | None:
    labels = child(meta, "labels")
    uid = text(labels, CRON_JOB_UID_LABEL)
    if not uid:
        return None
    notes = child(meta, "annotations")
    return ScheduledRun(
        cron_job=text(labels, CRON_JOB_LABEL),
        schedule_uid=uid,
        time=text(notes, SCHEDULED_TIME_ANNOTATION),
        trigger=text(notes, TRIGGER_ANNOTATION),
        backfill=text(labels, BACKFILL_LABEL) == "true",
    )
