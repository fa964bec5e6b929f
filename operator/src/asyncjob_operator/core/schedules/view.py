"""What decisions need to know of an AsyncCronJob, read from the API server's object.

Scheduled times are whole seconds since the epoch; other times may have fractions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from asyncjob.json_types import (
    Json,
    JsonObject,
    as_object,
    child,
    flag,
    integer,
    items,
    opt_integer,
    opt_text,
    text,
)
from asyncjob.lifecycle.schedules import ConcurrencyPolicy, MisfirePolicy
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob_operator.core.now import to_epoch


@dataclass(frozen=True, slots=True)
class Run:
    """One run to create; `trigger` is the number of the trigger that requested it."""

    name: str
    time: int
    trigger: int | None = None
    backfill: bool = False


@dataclass(frozen=True, slots=True)
class ReservedRuns:
    """The runs to create, and the operator that may; `claims` tells renewals apart."""

    by: str
    claims: int
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class ActiveJobRef:
    """A job that was unfinished when the status was written."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class ObservedSpec:
    """The part of the spec that the settled time is based on."""

    schedule: str
    time_zone: str
    suspend: bool


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """The requested range of past time, both ends included."""

    start: float
    end: float
    limit: int
    max_active: int


@dataclass(frozen=True, slots=True)
class BackfillState:
    """The progress of a backfill; `through` is the last time that was reserved."""

    start: float
    end: float
    through: float | None
    total: int
    created: int
    completed: bool


@dataclass(frozen=True, slots=True)
class CronJobView:
    """A cron job as decisions see it; `status` is the stored status."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    created: float
    deleting: bool
    schedule: str
    time_zone: str
    jitter_seconds: int
    concurrency_policy: ConcurrencyPolicy
    starting_deadline_seconds: int | None
    misfire_policy: MisfirePolicy
    misfire_limit: int
    suspend: bool
    trigger: int
    backfill: BackfillRequest | None
    successful_jobs_history_limit: int
    failed_jobs_history_limit: int
    settled_time: float
    """All scheduled times up to this one are settled: reserved, run or counted as missed."""

    observed: ObservedSpec | None
    reserved: ReservedRuns | None
    claims: int
    triggers: int
    backfill_state: BackfillState | None
    missed: int
    """How many scheduled times never got a run."""

    active: tuple[ActiveJobRef, ...]
    active_count: int
    status: JsonObject

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def runs(self) -> tuple[Run, ...]:
        """Return the reserved runs."""
        return self.reserved.runs if self.reserved else ()


def read_cron_job(obj: JsonObject) -> CronJobView:
    """Read an AsyncCronJob. Raises ValueError on a value that this version does not know."""
    meta, spec, status = child(obj, "metadata"), child(obj, "spec"), child(obj, "status")
    created = to_epoch(text(meta, "creationTimestamp"), default=0.0)
    return CronJobView(
        namespace=text(meta, "namespace"),
        name=text(meta, "name"),
        uid=text(meta, "uid"),
        resource_version=text(meta, "resourceVersion"),
        created=created,
        deleting="deletionTimestamp" in meta,
        schedule=text(spec, "schedule"),
        time_zone=text(spec, "timeZone", "UTC"),
        jitter_seconds=integer(spec, "jitterSeconds"),
        concurrency_policy=ConcurrencyPolicy(
            text(spec, "concurrencyPolicy", ConcurrencyPolicy.ALLOW)
        ),
        starting_deadline_seconds=opt_integer(spec, "startingDeadlineSeconds"),
        misfire_policy=MisfirePolicy(text(spec, "misfirePolicy", MisfirePolicy.FIRE_ONCE)),
        misfire_limit=integer(spec, "misfireLimit", 100),
        suspend=flag(spec, "suspend"),
        trigger=integer(spec, "trigger"),
        backfill=_read_backfill_request(child(spec, "backfill"), created),
        successful_jobs_history_limit=integer(spec, "successfulJobsHistoryLimit", 3),
        failed_jobs_history_limit=integer(spec, "failedJobsHistoryLimit", 3),
        settled_time=_settled_time(status, created),
        observed=_read_observed(child(status, "observed")),
        reserved=_read_reserved(status, created),
        claims=integer(status, "claims"),
        triggers=integer(status, "triggers"),
        backfill_state=_read_backfill_state(child(status, "backfill"), created),
        missed=integer(status, "missed"),
        active=tuple(_read_active(as_object(item)) for item in items(status, "active")),
        active_count=integer(status, "activeCount"),
        status=status,
    )


def _settled_time(status: JsonObject, created: float) -> float:
    """Return the time up to which all times are settled, by default that of the creation."""
    stored = [text(status, name) for name in ("settledTime", "lastScheduleTime")]
    return max([to_epoch(time, default=created) for time in stored if time], default=created)


def _read_backfill_request(request: JsonObject, created: float) -> BackfillRequest | None:
    if not request:
        return None
    return BackfillRequest(
        to_epoch(text(request, "from"), default=created),
        to_epoch(text(request, "to"), default=created),
        integer(request, "limit", 100),
        integer(request, "maxActive", 1),
    )


def _read_backfill_state(state: JsonObject, created: float) -> BackfillState | None:
    if not state:
        return None
    through = opt_text(state, "through")
    return BackfillState(
        to_epoch(text(state, "from"), default=created),
        to_epoch(text(state, "to"), default=created),
        to_epoch(through, default=created) if through else None,
        integer(state, "total"),
        integer(state, "created"),
        flag(state, "completed"),
    )


def _read_observed(observed: JsonObject) -> ObservedSpec | None:
    if not observed:
        return None
    return ObservedSpec(
        text(observed, "schedule"), text(observed, "timeZone"), flag(observed, "suspend")
    )


def _read_reserved(status: JsonObject, created: float) -> ReservedRuns | None:
    reserved = child(status, "reserved")
    if not reserved:
        return None
    runs = tuple(_read_run(as_object(item), created) for item in items(reserved, "runs"))
    return ReservedRuns(text(reserved, "by"), integer(status, "claims"), runs)


def _read_active(item: JsonObject) -> ActiveJobRef:
    return ActiveJobRef(text(item, "name"), text(item, "uid"))


def _read_run(run: JsonObject, created: float) -> Run:
    return Run(
        text(run, "name"),
        int(to_epoch(text(run, "time"), default=created)),
        opt_integer(run, "trigger"),
        flag(run, "backfill"),
    )


def format_epoch(seconds: float) -> str:
    """Return the time as it is stored."""
    return format_timestamp(datetime.fromtimestamp(seconds, UTC))


def runs_to_json(runs: Sequence[Run]) -> list[Json]:
    """Return the runs as they are stored."""
    return [_run_to_json(run) for run in runs]


def _run_to_json(run: Run) -> dict[str, Json]:
    stored: dict[str, Json] = {"name": run.name, "time": format_epoch(run.time)}
    if run.trigger is not None:
        stored["trigger"] = run.trigger
    if run.backfill:
        stored["backfill"] = True
    return stored
