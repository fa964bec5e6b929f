"""What deciding needs to know of an AsyncCronJob, read off an object from the API server.

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
from asyncjob.lifecycle.timestamps import to_text
from asyncjob_operator.core.moment import epoch


@dataclass(frozen=True, slots=True)
class Run:
    """One run decided on; `trigger` is the number of the trigger that asked for it."""

    name: str
    time: int
    trigger: int | None = None
    backfill: bool = False


@dataclass(frozen=True, slots=True)
class Reserved:
    """The runs about to be created, and who creates them; `number` tells renewals apart."""

    by: str
    number: int
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Active:
    """A job that was unfinished when the status was written."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Observed:
    """The spec that the settled time was judged by."""

    schedule: str
    time_zone: str
    suspend: bool


@dataclass(frozen=True, slots=True)
class BackfillWish:
    """A range of time gone by, both ends included."""

    start: float
    end: float
    limit: int
    max_active: int


@dataclass(frozen=True, slots=True)
class BackfillState:
    """How far a backfill has come; `through` is the last time acted on."""

    start: float
    end: float
    through: float | None
    total: int
    created: int
    completed: bool


@dataclass(frozen=True, slots=True)
class CronView:
    """A schedule as decisions see it; `status` is what is stored."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    created: float
    deleting: bool
    schedule: str
    time_zone: str
    jitter: int
    concurrency: ConcurrencyPolicy
    starting_deadline: int | None
    misfire: MisfirePolicy
    misfire_limit: int
    suspend: bool
    trigger: int
    backfill: BackfillWish | None
    keep_succeeded: int
    keep_failed: int
    settled: float
    observed: Observed | None
    reserved: Reserved | None
    claims: int
    triggers: int
    backfilled: BackfillState | None
    missed: int
    active: tuple[Active, ...]
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


def read_cron(obj: JsonObject) -> CronView:
    """Read an AsyncCronJob; raises ValueError on a value this version does not know."""
    meta, spec, status = child(obj, "metadata"), child(obj, "spec"), child(obj, "status")
    created = epoch(text(meta, "creationTimestamp"), otherwise=0.0)
    return CronView(
        namespace=text(meta, "namespace"),
        name=text(meta, "name"),
        uid=text(meta, "uid"),
        resource_version=text(meta, "resourceVersion"),
        created=created,
        deleting="deletionTimestamp" in meta,
        schedule=text(spec, "schedule"),
        time_zone=text(spec, "timeZone", "UTC"),
        jitter=integer(spec, "jitterSeconds"),
        concurrency=ConcurrencyPolicy(text(spec, "concurrencyPolicy", ConcurrencyPolicy.ALLOW)),
        starting_deadline=opt_integer(spec, "startingDeadlineSeconds"),
        misfire=MisfirePolicy(text(spec, "misfirePolicy", MisfirePolicy.FIRE_ONCE)),
        misfire_limit=integer(spec, "misfireLimit", 100),
        suspend=flag(spec, "suspend"),
        trigger=integer(spec, "trigger"),
        backfill=_read_wish(child(spec, "backfill"), created),
        keep_succeeded=integer(spec, "successfulJobsHistoryLimit", 3),
        keep_failed=integer(spec, "failedJobsHistoryLimit", 3),
        settled=_settled(status, created),
        observed=_read_observed(child(status, "observed")),
        reserved=_read_reserved(status, created),
        claims=integer(status, "claims"),
        triggers=integer(status, "triggers"),
        backfilled=_read_backfill(child(status, "backfill"), created),
        missed=integer(status, "missed"),
        active=tuple(_read_active(as_object(item)) for item in items(status, "active")),
        active_count=integer(status, "activeCount"),
        status=status,
    )


def _settled(status: JsonObject, created: float) -> float:
    """Return until when all is settled: a schedule owes nothing for before it was created."""
    said = [text(status, name) for name in ("settledTime", "lastScheduleTime")]
    return max([epoch(time, otherwise=created) for time in said if time], default=created)


def _read_wish(wish: JsonObject, created: float) -> BackfillWish | None:
    if not wish:
        return None
    return BackfillWish(
        epoch(text(wish, "from"), otherwise=created),
        epoch(text(wish, "to"), otherwise=created),
        integer(wish, "limit", 100),
        integer(wish, "maxActive", 1),
    )


def _read_backfill(state: JsonObject, created: float) -> BackfillState | None:
    if not state:
        return None
    through = opt_text(state, "through")
    return BackfillState(
        epoch(text(state, "from"), otherwise=created),
        epoch(text(state, "to"), otherwise=created),
        epoch(through, otherwise=created) if through else None,
        integer(state, "total"),
        integer(state, "created"),
        flag(state, "completed"),
    )


def _read_observed(observed: JsonObject) -> Observed | None:
    if not observed:
        return None
    return Observed(
        text(observed, "schedule"), text(observed, "timeZone"), flag(observed, "suspend")
    )


def _read_reserved(status: JsonObject, created: float) -> Reserved | None:
    reserved = child(status, "reserved")
    if not reserved:
        return None
    runs = tuple(_read_run(as_object(item), created) for item in items(reserved, "runs"))
    return Reserved(text(reserved, "by"), integer(status, "claims"), runs)


def _read_active(item: JsonObject) -> Active:
    return Active(text(item, "name"), text(item, "uid"))


def _read_run(run: JsonObject, created: float) -> Run:
    return Run(
        text(run, "name"),
        int(epoch(text(run, "time"), otherwise=created)),
        opt_integer(run, "trigger"),
        flag(run, "backfill"),
    )


def stamp(moment: float) -> str:
    """Return the moment as it is stored."""
    return to_text(datetime.fromtimestamp(moment, UTC))


def write_runs(runs: Sequence[Run]) -> list[Json]:
    """Return the runs as they are stored."""
    return [_write_run(run) for run in runs]


def _write_run(run: Run) -> dict[str, Json]:
    stored: dict[str, Json] = {"name": run.name, "time": stamp(run.time)}
    if run.trigger is not None:
        stored["trigger"] = run.trigger
    if run.backfill:
        stored["backfill"] = True
    return stored
