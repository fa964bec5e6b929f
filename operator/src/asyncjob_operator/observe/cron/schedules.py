"""The schedules there are, judged as they and their jobs are seen. Writes nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.cron.child import Child
from asyncjob_operator.core.cron.decide import decide
from asyncjob_operator.core.cron.decision import CronDecision
from asyncjob_operator.core.cron.snapshot import CronSnapshot, plan_of
from asyncjob_operator.core.cron.view import CronView, Reserved, read_cron
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.options import DAY
from asyncjob_operator.observe.agenda import Agenda
from asyncjob_operator.observe.cron.children import Children, Cron
from asyncjob_operator.observe.followers import Name
from asyncjob_operator.observe.store import is_newer
from asyncjob_operator.telemetry.containment import Containment, Kind, Subject, subject

MANY: Final = 200
MANY_PAUSE: Final = 1.0
"""A schedule with more than so many jobs is looked at once in so many seconds as they change."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What this replica knows of a reservation; times are monotonic seconds of its own.

    `sent_at`: when it sent the write that made the reservation its own, if it did. `made`: which
    of the runs it has created, or found created.
    """

    reserved: Reserved
    seen_at: float
    sent_at: float | None = None
    made: frozenset[str] = frozenset()


class Schedules:
    """Views, claims and the agenda; `want` is told of schedules that something is due for."""

    def __init__(
        self,
        me: str,
        children: Children,
        now: Callable[[], Moment],
        want: Callable[[str], None],
        *,
        keeps_history: bool = True,
        containment: Containment | None = None,
        long_memory: float = DAY,
    ) -> None:
        self.containment = containment or Containment(lambda: now().monotonic, lambda _kind: None)
        self.agenda = Agenda()
        self.children = children
        children.changed = self._child_changed
        self._me = me
        self._now = now
        self._want = want
        self._keeps_history = keeps_history
        self._long_memory = long_memory
        self._views: dict[str, CronView] = {}
        self._uids: dict[Name, str] = {}
        self._claims: dict[str, Claim] = {}
        self._confirmed: dict[str, frozenset[str]] = {}

    def saw(self, obj: JsonObject) -> None:
        """Take a schedule as it was then."""
        meta = child(obj, "metadata")
        uid, version = text(meta, "uid"), text(meta, "resourceVersion")
        known = self._views.get(uid)
        if known and not is_newer(version, known.resource_version):
            return
        with self.containment.guard(subject(Kind.CRON_JOB, obj)) as guard:
            self._keep(read_cron(obj))
            self._judge(uid)
        self._leave_alone(uid, guard.pause)

    def lost(self, name: Name) -> None:
        """Take that there is no such schedule; its jobs are left alone."""
        self.containment.forget(Kind.CRON_JOB, *name)
        uid = self._uids.pop(name, None)
        if uid is not None:
            self._views.pop(uid, None)
            self._claims.pop(uid, None)
            self._confirmed.pop(uid, None)
            self.children.forget((name[0], uid))
            self.agenda.drop(uid)

    def known(self, namespace: str | None) -> Sequence[Name]:
        """Return the names of the known schedules of one namespace, or of all."""
        return [name for name in self._uids if namespace in (None, name[0])]

    def address(self, uid: str) -> CronView | None:
        """Return the view of a schedule."""
        return self._views.get(uid)

    def look(self, uid: str) -> None:
        """Judge a known schedule anew."""
        cron = self._views.get(uid)
        if cron is None:
            return
        one = Subject(Kind.CRON_JOB, cron.namespace, cron.name, cron.resource_version)
        with self.containment.guard(one) as guard:
            self._judge(uid)
        self._leave_alone(uid, guard.pause)

    def _judge(self, uid: str) -> None:
        cron, now = self._views[uid], self._now()
        decision = self._decide(cron, self.children.of((cron.namespace, uid)), now)
        if decision.effect is None:
            self.agenda.set(uid, decision.look_again_at)
        elif not self.agenda.is_blocked(uid, now.monotonic):
            self.agenda.drop(uid)
            self._want(uid)

    def refresh(
        self, obj: JsonObject, unfinished: list[Child] | None = None
    ) -> tuple[CronView, CronDecision]:
        """Take a fresh read and decide anew.

        `unfinished` are the schedule's unfinished jobs by reads that began after that one.
        """
        cron = read_cron(obj)
        known = self._views.get(cron.uid)
        if known and is_newer(cron.resource_version, known.resource_version):
            self._keep(cron)
        children = self.children.of((cron.namespace, cron.uid))
        if unfinished is not None:
            if cron.uid in self._views:
                self._confirmed[cron.uid] = frozenset(one.uid for one in unfinished)
            children = (*unfinished, *(one for one in children if one.finished))
        return cron, self._decide(cron, children, self._now())

    def unseen(self, cron: CronView) -> bool:
        """Return whether the status names active jobs that are not known here.

        Then they are gone, or this replica is behind who wrote it and must not take them off.
        """
        known = {one.uid for one in self.children.of((cron.namespace, cron.uid))}
        return any(one.uid not in known for one in cron.active)

    def possible(self, cron: CronView) -> frozenset[str] | None:
        """Return the names of all jobs that may be unfinished, or None if they are not known.

        A dead letter may have been redriven since it was seen.
        """
        if cron.active_count > len(cron.active):
            return None
        may_be = [
            one.name
            for one in self.children.of((cron.namespace, cron.uid))
            if one.is_run_of(cron) and (not one.finished or one.phase is Phase.DEAD_LETTER)
        ]
        active = [one.name for one in cron.active]
        return frozenset([*active, *(run.name for run in cron.runs), *may_be])

    def claimed(self, obj: JsonObject, sent_at: float) -> None:
        """Take the answer to a write, sent then, that made the reservation this replica's own."""
        cron = read_cron(obj)
        if cron.reserved and cron.uid in self._views:
            made = self._made(cron)
            self._claims[cron.uid] = Claim(cron.reserved, self._now().monotonic, sent_at, made)

    def created(self, uid: str, name: str) -> None:
        """Take that a reserved run has been created."""
        claim = self._claims.get(uid)
        if claim:
            self._claims[uid] = replace(claim, made=claim.made | {name})

    def sent_at(self, uid: str) -> float | None:
        """Return when this replica sent the write that gave it the reservation."""
        claim = self._claims.get(uid)
        return claim.sent_at if claim else None

    def postpone(self, uid: str, seconds: float) -> None:
        """Leave the schedule alone for so long, whatever is seen of it."""
        if uid in self._views:
            self.agenda.block(uid, self._now().monotonic + seconds)

    def _leave_alone(self, uid: str, seconds: float | None) -> None:
        """Leave a schedule alone that was set aside for so long, if it was."""
        if seconds is not None:
            self.postpone(uid, seconds)

    def _child_changed(self, child_of: Cron) -> None:
        """Look at a schedule when a job of it changes; at one with very many jobs once in a while.

        Each look goes through all jobs of the schedule.
        """
        namespace, uid = child_of
        cron = self._views.get(uid)
        if cron is None or cron.namespace != namespace:
            return
        if self.children.count(child_of) <= MANY:
            self.look(uid)
        else:
            self.agenda.bring_forward(uid, self._now().monotonic + MANY_PAUSE)

    def _keep(self, cron: CronView) -> None:
        name = (cron.namespace, cron.name)
        before = self._uids.get(name)
        if before is not None and before != cron.uid:
            self.lost(name)
        self._uids[name] = cron.uid
        self._views[cron.uid] = cron
        self.children.follow((cron.namespace, cron.uid))
        self._claim(cron)

    def _claim(self, cron: CronView) -> Claim | None:
        """Return what is known of the reservation as it is now."""
        claim = self._claims.get(cron.uid)
        if cron.reserved is None:
            self._claims.pop(cron.uid, None)
            return None
        if claim is None or (claim.reserved.by, claim.reserved.number) != (
            cron.reserved.by,
            cron.reserved.number,
        ):
            claim = Claim(cron.reserved, self._now().monotonic, made=self._made(cron))
            self._claims[cron.uid] = claim
        return claim

    def _made(self, cron: CronView) -> frozenset[str]:
        """Return which reserved runs were known to be made before the reservation changed hands."""
        before = self._claims.get(cron.uid)
        return (before.made if before else frozenset()) & {run.name for run in cron.runs}

    def _decide(self, cron: CronView, children: tuple[Child, ...], now: Moment) -> CronDecision:
        claim = self._claim(cron)
        made = claim.made if claim else frozenset()
        if cron.runs:
            seen = self.children.names((cron.namespace, cron.uid))
            made |= {run.name for run in cron.runs if not run.backfill and run.name in seen}
        return decide(
            CronSnapshot(
                cron=cron,
                plan=plan_of(cron),
                children=tuple(one for one in children if one.is_run_of(cron)),
                me=self._me,
                claim_sent_at=claim.sent_at if claim else None,
                claim_seen_at=claim.seen_at if claim else now.monotonic,
                made=made,
                confirmed=self._confirmed.get(cron.uid, frozenset()),
                keeps_history=self._keeps_history,
                long_memory=self._long_memory,
            ),
            now,
        )
