"""Acts on one job: reads it afresh, decides anew, confirms, writes once, and then tells."""

from collections.abc import Callable
from typing import Final, Protocol

import structlog

from asyncjob.errors import ApiError, ConflictError, ForbiddenError, InvalidError, NotFoundError
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.view import JobView
from asyncjob.names import job_path
from asyncjob_operator.apply.confirm import Confirmation
from asyncjob_operator.apply.notices import Notices
from asyncjob_operator.apply.patience import LONGEST_REFUSED, Patience
from asyncjob_operator.apply.write import Written, write
from asyncjob_operator.core.decision import (
    Abort,
    Decision,
    Effect,
    Refuse,
    Rename,
    Rerun,
    Transition,
)
from asyncjob_operator.core.job_event import notice
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.policies import recovery, rerun
from asyncjob_operator.kube.chance import draw
from asyncjob_operator.kube.clock import moment
from asyncjob_operator.telemetry.containment import Kind, Subject
from asyncjob_operator.telemetry.logged import logged, logged_by_name
from asyncjob_operator.telemetry.metrics import Metrics
from asyncjob_operator.telemetry.tally import Tally

log = structlog.get_logger()

FREE_CONFLICTS: Final = 2
"""So many conflicts in a row are looked at again at once."""


class Where(Protocol):
    """Where a job is."""

    @property
    def namespace(self) -> str:
        """Return its namespace."""

    @property
    def name(self) -> str:
        """Return its name."""

    @property
    def version(self) -> str:
        """Return which version of it is known."""


class Judge(Protocol):
    """Who knows the jobs and decides about them."""

    def address(self, uid: str) -> Where | None:
        """Return where a job is."""

    def refresh(self, obj: JsonObject, draw: float) -> tuple[JobView, Decision]:
        """Take a fresh read and decide anew."""

    def saw(self, obj: JsonObject, *, live: bool) -> None:
        """Take the answer to a write."""

    def lost(self, uid: str) -> None:
        """Take that a job is gone."""

    def postpone(self, uid: str, seconds: float) -> None:
        """Leave a job alone for so long."""

    def refused(self, uid: str, number: int) -> None:
        """Remember that a wish was refused and said so."""

    def hold_rerun(self, uid: str, seconds: float) -> None:
        """Leave the rerun that somebody wants of a job alone for so long, and nothing else."""

    def silent_for(self, uid: str) -> float | None:
        """Return the seconds since the last heartbeat of a running job, if one was seen."""


class Actor:
    """Carries out what is due for a job; `leads` is asked again right before each write.

    `on_recovered` is told namespace and reason of each job taken from a dead worker.
    """

    def __init__(
        self,
        session: KubeSession,
        judge: Judge,
        *,
        confirmation: Confirmation,
        patience: Patience,
        notices: Notices,
        metrics: Metrics,
        tally: Tally,
        leads: Callable[[], bool],
        now: Callable[[], Moment] = moment,
        on_recovered: Callable[[str, str], None] = lambda *_: None,
    ) -> None:
        self._session = session
        self._judge = judge
        self._on_recovered = on_recovered
        self._confirmation = confirmation
        self._patience = patience
        self._refusals = Patience(patience.initial, LONGEST_REFUSED)
        self._notices = notices
        self._metrics = metrics
        self._tally = tally
        self._leads = leads
        self._now = now

    async def act(self, key: str) -> None:
        """Do what is due for the job with this UID now, if still anything is."""
        uid = key
        where = self._judge.address(uid)
        if where is None:
            return
        policy = "none"
        try:
            obj = await self._session.get(job_path(where.namespace, where.name))
            if text(child(obj, "metadata"), "uid") != uid:
                self._judge.lost(uid)
                return
            job, decision = self._judge.refresh(obj, draw())
            if decision.effect is None:
                self._succeeded(uid)
                return
            policy = decision.effect.policy
            with logged(job, obj):
                await self._carry_out(decision.effect, job, obj)
        except NotFoundError:
            self._count(policy, "gone")
            self._succeeded(uid)
            self._judge.lost(uid)
        except ApiError as error:
            with logged_by_name(where.namespace, where.name):
                self._failed(uid, policy, error)

    def subject(self, key: str) -> Subject:
        """Return the job with this UID in the version that is known."""
        where = self._judge.address(key)
        if where is None:
            return Subject(Kind.JOB, "", key)
        return Subject(Kind.JOB, where.namespace, where.name, where.version)

    def broken(self, key: str, seconds: float) -> None:
        """Leave a job alone that makes the operator stumble."""
        self._judge.postpone(key, seconds)

    async def _carry_out(self, effect: Effect, job: JobView, obj: JsonObject) -> None:
        proof = None if isinstance(effect, Rename | Rerun | Abort) else effect.proof
        if not await self._confirmation.holds(proof):
            self._count(effect.policy, "disproved")
            self._judge.postpone(job.uid, self._patience.failed(job.uid))
            return
        if not self._leads():
            return
        if isinstance(effect, Refuse):
            self._judge.refused(job.uid, effect.number)
            self._notices.tell(notice(job, "RedriveRefused", effect.message))
            log.warning("wish refused", policy=effect.policy, why=effect.message)
            return
        written = await write(self._session, effect, job, obj, self._now().text)
        self._wrote(effect, job, written)

    def _wrote(self, effect: Effect, job: JobView, written: Written) -> None:
        self._count(effect.policy, "done")
        if text(child(written.job, "metadata"), "resourceVersion") == job.resource_version:
            log.warning("write changed nothing", policy=effect.policy)
            self._judge.postpone(job.uid, self._patience.cap)
            return
        self._succeeded(job.uid)
        self._tell(effect, job, written)
        self._judge.saw(written.job, live=True)

    def _tell(self, effect: Effect, job: JobView, written: Written) -> None:
        reason = ""
        if isinstance(effect, Transition):
            reason = effect.move.reason.value if effect.move.reason else ""
            log.debug("moved", policy=effect.policy, to=effect.move.target.value)
            if effect.policy == recovery.NAME:
                self._recovered(job, reason)
        if written.name_taken and isinstance(effect, Rerun):
            message = f"not rerun: {effect.name} exists and is another job"
            self._notices.tell(notice(job, "RerunRefused", message))

    def _recovered(self, job: JobView, reason: str) -> None:
        self._metrics.recovered.labels(reason).inc()
        self._tally.recovered(reason)
        self._on_recovered(job.namespace, reason)
        silent_for = self._judge.silent_for(job.uid)
        if silent_for is not None:
            self._metrics.recovery_seconds.observe(silent_for)

    def _failed(self, uid: str, policy: str, error: ApiError) -> None:
        pause = self._patience.failed(uid)
        if isinstance(error, ConflictError):
            self._count(policy, "conflict")
            if self._patience.failures(uid) <= FREE_CONFLICTS:
                return
        elif isinstance(error, InvalidError | ForbiddenError):
            self._count(policy, "refused")
            pause = self._refusals.failed(uid)
            if self._refusals.is_news(uid, str(error)):
                log.error(
                    "write refused by a rule",
                    uid=uid,
                    policy=policy,
                    rule=str(error),
                    retry_in=pause,
                )
        else:
            self._count(policy, "error")
            log.warning("write failed", uid=uid, policy=policy, error=str(error), retry_in=pause)
        if policy == recovery.NAME:
            self._metrics.recovery_failed.inc()
        if policy == rerun.NAME:
            self._judge.hold_rerun(uid, min(pause, self._patience.cap))
        else:
            self._judge.postpone(uid, pause)

    def _succeeded(self, uid: str) -> None:
        self._patience.succeeded(uid)
        self._refusals.succeeded(uid)

    def _count(self, policy: str, outcome: str) -> None:
        self._metrics.writes.labels(policy, outcome).inc()
