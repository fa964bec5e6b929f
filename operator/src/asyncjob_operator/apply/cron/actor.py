"""Acts on one schedule: reads it afresh, decides anew, and carries out one effect."""

from collections.abc import Callable
from typing import Final, Protocol

import structlog

from asyncjob.errors import ApiError, ConflictError, ForbiddenError, InvalidError, NotFoundError
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.move import merge_body
from asyncjob.lifecycle.phases import FINISHED
from asyncjob.lifecycle.schedules import CronReason
from asyncjob.lifecycle.view import read_job
from asyncjob.names import (
    CRON_JOB_KIND,
    CRON_JOB_UID_LABEL,
    JOBS,
    collection,
    cron_job_path,
    cron_job_status_path,
    job_path,
)
from asyncjob_operator.apply.cron.runs import Runs
from asyncjob_operator.apply.notices import Notices
from asyncjob_operator.apply.patience import LONGEST_REFUSED, Patience
from asyncjob_operator.core.cron.child import Child, child_of, cron_uid_of
from asyncjob_operator.core.cron.claim import may_create
from asyncjob_operator.core.cron.completion import dropped, too_late
from asyncjob_operator.core.cron.decision import (
    Cancel,
    Create,
    CronDecision,
    Effect,
    GiveUp,
    Remove,
    Told,
    Write,
)
from asyncjob_operator.core.cron.view import CronView, Run
from asyncjob_operator.core.job_event import Notice
from asyncjob_operator.kube.clock import monotonic
from asyncjob_operator.telemetry.containment import Kind, Subject
from asyncjob_operator.telemetry.metrics import Metrics

log = structlog.get_logger()

NAME: Final = "schedule"
NOTICE_REST: Final = 3600.0
"""The same reason about the same schedule is told again after an hour at the soonest."""

REFUSED: Final = "WriteRefused"
"""Reason of the Event about a schedule whose next step the API server refuses."""

CONFLICT_SHARE: Final = 10
"""A schedule that somebody else has changed is looked at sooner than one that failed."""

MOST_BY_NAME: Final = 16
"""Beyond so many a list is cheaper than reading them one by one."""

_UNFINISHED: Final = ",".join(f"status.phase!={phase.value}" for phase in sorted(FINISHED))


class Judge(Protocol):
    """Who knows the schedules and decides about them."""

    def address(self, uid: str) -> CronView | None:
        """Return where a schedule is."""

    def refresh(
        self, obj: JsonObject, unfinished: list[Child] | None = None
    ) -> tuple[CronView, CronDecision]:
        """Take a fresh read and decide anew."""

    def unseen(self, cron: CronView) -> bool:
        """Return whether the status names active jobs that are not known here."""

    def possible(self, cron: CronView) -> frozenset[str] | None:
        """Return the names of all jobs that may be unfinished, or None if they are not known."""

    def saw(self, obj: JsonObject) -> None:
        """Take the answer to a write."""

    def lost(self, name: tuple[str, str]) -> None:
        """Take that a schedule is gone."""

    def claimed(self, obj: JsonObject, sent_at: float) -> None:
        """Take the answer to a write that made the reservation this replica's own."""

    def created(self, uid: str, name: str) -> None:
        """Take that a reserved run has been created."""

    def sent_at(self, uid: str) -> float | None:
        """Return when this replica sent the write that gave it the reservation."""

    def postpone(self, uid: str, seconds: float) -> None:
        """Leave a schedule alone for so long."""


class CronActor:
    """`leads` is asked again right before each write; `saw_job` takes jobs as they come to be."""

    def __init__(
        self,
        session: KubeSession,
        judge: Judge,
        *,
        patience: Patience,
        notices: Notices,
        metrics: Metrics,
        leads: Callable[[], bool],
        saw_job: Callable[[JsonObject], None],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._session = session
        self._judge = judge
        self._patience = patience
        self._refusals = Patience(patience.initial, LONGEST_REFUSED)
        self._notices = notices
        self._metrics = metrics
        self._leads = leads
        self._saw_job = saw_job
        self._clock = clock
        self._runs = Runs(session, self._may_create, self._made)

    async def act(self, uid: str) -> None:
        """Do what is due for the schedule now, if still anything is."""
        where = self._judge.address(uid)
        if where is None:
            return
        try:
            obj = await self._read(where)
            if await self._act_on(obj):
                self._succeeded(uid)
            else:  # what was known is behind what there is: let the watches catch up
                self._judge.postpone(uid, self._patience.failed(uid) / CONFLICT_SHARE)
        except NotFoundError:
            self._succeeded(uid)
            self._judge.lost((where.namespace, where.name))
        except ConflictError:
            log.debug("schedule changed meanwhile", cron=where.key)
            self._judge.postpone(uid, self._patience.failed(uid) / CONFLICT_SHARE)
        except (InvalidError, ForbiddenError) as error:
            self._refused(where, error)
        except ApiError as error:
            pause = self._patience.failed(uid)
            log.warning("schedule failed", cron=where.key, error=str(error), retry_in=pause)
            self._judge.postpone(uid, pause)

    def _refused(self, where: CronView, error: InvalidError | ForbiddenError) -> None:
        """Leave it alone for longer each time; a quota may give way at any moment, a rule not."""
        self._metrics.writes.labels(NAME, "refused").inc()
        pause = self._refusals.failed(where.uid)
        if isinstance(error, ForbiddenError):
            pause = min(pause, self._patience.cap)
        if self._refusals.is_news(where.uid, str(error)):
            log.warning("schedule refused", cron=where.key, error=str(error), retry_in=pause)
            self._notices.tell(_refusal(where, error))
        self._judge.postpone(where.uid, pause)

    def _succeeded(self, uid: str) -> None:
        self._patience.succeeded(uid)
        self._refusals.succeeded(uid)

    def subject(self, uid: str) -> Subject:
        """Return the schedule in the version that is known."""
        cron = self._judge.address(uid)
        if cron is None:
            return Subject(Kind.CRON_JOB, "", uid)
        return Subject(Kind.CRON_JOB, cron.namespace, cron.name, cron.resource_version)

    def broken(self, uid: str, seconds: float) -> None:
        """Leave a schedule alone that makes the operator stumble."""
        self._judge.postpone(uid, seconds)

    async def _read(self, where: CronView) -> JsonObject:
        obj = await self._session.get(cron_job_path(where.namespace, where.name))
        if text(child(obj, "metadata"), "uid") != where.uid:
            raise NotFoundError(f"{where.key} is another schedule by now", status=404)
        return obj

    async def _act_on(self, obj: JsonObject) -> bool:
        """Return whether there was anything to do.

        The answer to a write is a fresh read, too: going on with it leaves more of the
        reservation's time for what it is for, and takes what is made off the list at once.
        """
        latest: JsonObject | None = obj
        acted = False
        while latest is not None:
            cron, decision = await self._decide(latest)
            if decision.effect is None:
                return acted
            acted = True
            if not self._leads():
                return acted
            latest = await self._carry_out(decision.effect, cron, latest)
        return acted

    async def _decide(self, obj: JsonObject) -> tuple[CronView, CronDecision]:
        cron, decision = self._judge.refresh(obj)
        effect = decision.effect
        if effect and (effect.rests or (isinstance(effect, Write) and self._judge.unseen(cron))):
            return self._judge.refresh(obj, await self._unfinished(cron))
        return cron, decision

    async def _unfinished(self, cron: CronView) -> list[Child]:
        """Read the schedule's unfinished jobs; it begins after the schedule was read.

        Each of them stands in the status that was just read, as reserved or as active: a run is
        reserved before it is created, is active before its reservation goes, and leaves there
        only when whoever writes that has seen it end. What this replica knows itself comes on
        top, as a person may redrive one. So a few jobs are read by name, and not a namespace.
        """
        names = self._judge.possible(cron)
        if names is None or len(names) > MOST_BY_NAME:
            return await self._listed(cron)
        found = [await self._one(cron, name) for name in sorted(names)]
        return [one for one in found if one is not None]

    async def _one(self, cron: CronView, name: str) -> Child | None:
        try:
            obj = await self._session.get(job_path(cron.namespace, name))
        except NotFoundError:
            return None
        one = child_of(read_job(obj), obj)
        return one if cron_uid_of(obj) == cron.uid and not one.finished else None

    async def _listed(self, cron: CronView) -> list[Child]:
        params = {
            "labelSelector": f"{CRON_JOB_UID_LABEL}={cron.uid}",
            "fieldSelector": _UNFINISHED,
        }
        found = self._session.list(collection(cron.namespace, JOBS), params)
        return [child_of(read_job(obj), obj) async for obj in found]

    async def _carry_out(
        self, effect: Effect, cron: CronView, obj: JsonObject
    ) -> JsonObject | None:
        """Return the schedule as it is now, if there is more to do at once."""
        match effect:
            case Write():
                answer = await self._write(effect, cron)
                return answer if effect.claims else None
            case Create():
                return await self._create(effect, cron, obj)
            case GiveUp():
                return await self._give_up(effect, cron, obj)
            case Cancel() | Remove():
                for one in effect.children:
                    await (self._cancel if isinstance(effect, Cancel) else self._remove)(one)
        return None  # to Ask, the reads have answered

    async def _create(self, effect: Create, cron: CronView, obj: JsonObject) -> JsonObject:
        refused = await self._runs.create(cron, obj, effect.runs)
        if refused is None:
            return obj
        log.warning("run refused", cron=cron.key, run=refused.run.name, why=refused.why)
        message = f"no job {refused.run.name}: {refused.why}"
        return await self._write(dropped(cron, [refused.run], refused.reason, message), cron)

    async def _give_up(self, effect: GiveUp, cron: CronView, obj: JsonObject) -> JsonObject:
        if await self._runs.find(cron, effect.runs):
            return obj
        message = too_late(effect.runs)
        return await self._write(dropped(cron, effect.runs, CronReason.SKIPPED, message), cron)

    async def _write(self, effect: Write, cron: CronView) -> JsonObject:
        sent_at = self._clock()
        body = merge_body(effect.fields, cron.resource_version)
        answer = await self._session.merge_patch(
            cron_job_status_path(cron.namespace, cron.name), body
        )
        if effect.claims:
            self._judge.claimed(answer, sent_at)
        log.debug("schedule written", cron=cron.key, policy=effect.policy)
        if effect.told:
            self._notices.tell(_notice(cron, effect.told))
        self._judge.saw(answer)
        return answer

    def _may_create(self, uid: str) -> bool:
        return self._leads() and may_create(self._judge.sent_at(uid), self._clock())

    def _made(self, uid: str, run: Run, job: JsonObject | None) -> None:
        self._judge.created(uid, run.name)
        self._metrics.cron_runs.labels(_kind(run)).inc()
        if job is not None:
            self._saw_job(job)

    async def _cancel(self, one: Child) -> None:
        body: JsonObject = {"metadata": {"uid": one.uid}, "spec": {"cancel": True}}
        try:
            answer = await self._session.merge_patch(job_path(one.namespace, one.name), body)
        except (ConflictError, NotFoundError):
            return  # another job by now, or none
        self._saw_job(answer)

    async def _remove(self, one: Child) -> None:
        preconditions = {"uid": one.uid, "resourceVersion": one.version}
        body: JsonObject = {"preconditions": preconditions, "propagationPolicy": "Background"}
        if not self._leads():
            return
        try:
            await self._session.delete(job_path(one.namespace, one.name), body)
        except (ConflictError, NotFoundError):
            return  # changed or gone: the watch tells
        self._metrics.removed.inc()


def _kind(run: Run) -> str:
    if run.trigger is not None:
        return "trigger"
    return "backfill" if run.backfill else "schedule"


def _notice(cron: CronView, told: Told) -> Notice:
    return _about(cron, told.reason.value, told.message)


def _refusal(cron: CronView, error: ApiError) -> Notice:
    """Return what people are told while a quota or a rule keeps the schedule from going on."""
    return _about(cron, REFUSED, f"tried again later, because it is refused now: {error}")


def _about(cron: CronView, reason: str, message: str) -> Notice:
    uid = cron.uid
    return Notice(
        cron.namespace, cron.name, uid, reason, message, kind=CRON_JOB_KIND, rest=NOTICE_REST
    )
