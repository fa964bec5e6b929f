"""Judges each job as it is seen: act now, look again later, or neither.

Level-triggered: what is due follows from all that is known, never from which event came. Nothing
here waits or writes; whoever acts is told by `want` and `unwant`.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.view import JobView, read_job
from asyncjob_operator.core.decide import decide
from asyncjob_operator.core.decision import Decision
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.options import Options
from asyncjob_operator.core.policies import rerun
from asyncjob_operator.core.policies.redrive import is_redrive_wished
from asyncjob_operator.core.queue_view import QueueView
from asyncjob_operator.core.roll_call import Concerned
from asyncjob_operator.core.sighting import Sighting, sight
from asyncjob_operator.core.snapshot import Snapshot
from asyncjob_operator.observe.agenda import Agenda
from asyncjob_operator.observe.cron.children import Children
from asyncjob_operator.observe.halls import Halls
from asyncjob_operator.observe.kinship import NO_FAMILY, Kinship
from asyncjob_operator.observe.progress import Progress
from asyncjob_operator.observe.queue_survey import QueueSurvey
from asyncjob_operator.observe.queues import Queues
from asyncjob_operator.observe.roll_calls import RollCalls
from asyncjob_operator.observe.store import Address, JobStore
from asyncjob_operator.observe.workers import Workers
from asyncjob_operator.telemetry.containment import Containment, Kind, Subject, subject
from asyncjob_operator.telemetry.job_metrics import JobMetrics

AT_ONCE = 20
"""So many jobs are looked at without letting others take their turn."""


class Listener(Protocol):
    """Who acts on what the observer finds."""

    def want(self, uid: str, lane: str) -> None:
        """Take that something is to be done about the job; lanes take turns."""

    def unwant(self, uid: str) -> None:
        """Take that nothing is to be done about the job any more."""

    def make_room(self, queue: tuple[str, str]) -> None:
        """Take that somebody may get a place in a queue with limits."""

    def died(self, job: JobView, message: str) -> None:
        """Take that the job has just become a dead letter, whoever wrote that."""


class Observer:
    """The store, the sightings and the agenda under one roof.

    A job that makes it fail, whatever it holds, is set aside: it is looked at again when it
    changes, or after a pause. All that is known of it by then stays.
    """

    def __init__(
        self,
        options: Options,
        now: Callable[[], Moment],
        listener: Listener,
        metrics: JobMetrics | None = None,
        containment: Containment | None = None,
    ) -> None:
        self.containment = containment or Containment(lambda: now().monotonic, lambda _kind: None)
        self.store = JobStore()
        self.progress = Progress()
        self.agenda = Agenda()
        self.kinship = Kinship(self.store, self.agenda.add_all)
        self.children = Children()
        self.workers = Workers(lambda: now().monotonic, self._pod_changed)
        self.halls = Halls(now, listener.make_room, self.look)
        self.queues = Queues(self._queue_changed, self.halls)
        self.roll_calls = RollCalls(lambda: now().monotonic, self._roll_changed, listener.make_room)
        self.survey = QueueSurvey(self.store, self.queues, self.roll_calls, now, self.containment)
        self._options = options
        self._now = now
        self._listener = listener
        self._metrics = metrics
        self._seen: dict[str, Sighting] = {}
        self._refused: dict[str, int] = {}
        self._rerun_after: dict[str, float] = {}

    def saw(self, obj: JsonObject, *, live: bool) -> None:
        """Take a job as it was then; `live`: seen as it changed, not found in a list."""
        meta = child(obj, "metadata")
        uid = text(meta, "uid")
        if not self.store.is_news(uid, text(meta, "resourceVersion")):
            return
        with self.containment.guard(subject(Kind.JOB, obj)) as guard:
            job = read_job(obj)
            self._keep(job, obj, live=live)
            self._judge(job, self._now(), live=live)
        self._leave_alone(uid, guard.pause)

    def refresh(self, obj: JsonObject, draw: float) -> tuple[JobView, Decision]:
        """Take a fresh read of a job that is to be acted on, and decide anew."""
        job, now = read_job(obj), self._now()
        if job.uid in self.store and self.store.is_news(job.uid, job.resource_version):
            self._keep(job, obj, live=True)
        now = Moment(now.monotonic, now.wall, draw)
        return job, self._decide(job, now, live=True)

    def deleted(self, obj: JsonObject) -> None:
        """Take that the job is gone, as the watch tells, were it never understood."""
        meta = child(obj, "metadata")
        self.lost(text(meta, "uid"))
        self.containment.forget(Kind.JOB, text(meta, "namespace"), text(meta, "name"))

    def lost(self, uid: str) -> None:
        """Take that the job is gone."""
        known = self.store.known(uid)
        one = known or Subject(Kind.JOB, "", uid)
        with self.containment.guard(Subject(Kind.JOB, one.namespace, one.name)):
            self._lose(uid)
        self.containment.forget(Kind.JOB, one.namespace, one.name)

    def _lose(self, uid: str) -> None:
        job, known = self.store.get(uid), self.store.known(uid)
        family = self.kinship.family(known) if known else NO_FAMILY
        contenders = self.store.contenders(job) if job else ()
        self.store.delete(uid)
        self.children.lost(uid)
        self._seen.pop(uid, None)
        self._refused.pop(uid, None)
        self._rerun_after.pop(uid, None)
        self.agenda.drop(uid)
        self._listener.unwant(uid)
        if job:
            self.halls.lose(job)
            self._look_at_contenders(job, contenders)
        if known:
            self._look_at_many(self.kinship.gone(known, family))

    def look(self, uid: str) -> None:
        """Judge a known job anew."""
        job = self.store.get(uid)
        if job is None:
            self._look_at_finished(uid)
            return
        with self.containment.guard(_subject(job)) as guard:
            self._judge(job, self._now(), live=False)
        self._leave_alone(uid, guard.pause)

    def postpone(self, uid: str, seconds: float) -> None:
        """Leave the job alone for so long, whatever is seen of it."""
        if uid in self.store:
            self.agenda.block(uid, self._now().monotonic + seconds)
            self._listener.unwant(uid)

    def refused(self, uid: str, number: int) -> None:
        """Remember that a wish was refused and said so; it is not told again."""
        self._refused[uid] = number

    def hold_rerun(self, uid: str, seconds: float) -> None:
        """Leave the rerun that somebody wants of the job alone for so long, and nothing else."""
        if uid in self.store:
            self._rerun_after[uid] = self._now().monotonic + seconds
            self.agenda.set(uid, self._rerun_after[uid])

    def silent_for(self, uid: str) -> float | None:
        """Return the seconds since the last heartbeat that was seen of a running job."""
        seen = self._seen.get(uid)
        return self._now().monotonic - seen.renewed_at if seen else None

    def address(self, uid: str) -> Address | None:
        """Return where a job is."""
        return self.store.address(uid)

    def is_current(self, uid: str) -> bool:
        """Return whether all that was written before a job's known version is known, too."""
        where = self.store.address(uid)
        return where is not None and self.progress.has_reached(where.namespace, where.version)

    def queue_of(self, job: JobView) -> QueueView:
        """Return the view of the job's queue."""
        return self.queues.view(job.namespace, job.queue)

    def _keep(self, job: JobView, obj: JsonObject, *, live: bool) -> None:
        before, known = self.store.get(job.uid), self.store.known(job.uid)
        if live and self._metrics:
            self._metrics.saw(known, job, self._seen.get(job.uid))
        family, contenders = self.kinship.family(job), self.store.contenders(job)
        self.store.put(job)
        if job.wishes.rerun <= job.reruns:
            self._rerun_after.pop(job.uid, None)
        self._look_at_many(self.kinship.changed(job, known, family))
        self.children.saw(job, obj, self._now().wall)
        if before and before.phase is not job.phase:
            if job.phase is Phase.DEAD_LETTER and live:
                self._listener.died(job, text(child(obj, "status"), "message"))
            if job.finished:
                self.survey.finished((job.namespace, job.queue))
        self._look_at_contenders(job, contenders)

    def _judge(self, job: JobView, now: Moment, *, live: bool) -> None:
        decision = self._decide(job, now, live=live)
        self.halls.take(job, lines_up=decision.lines_up and decision.effect is None)
        if decision.effect is None:
            self._listener.unwant(job.uid)
            self.agenda.set(job.uid, decision.look_again_at)
            if job.finished:
                self._retire(job)
        elif not self.agenda.is_blocked(job.uid, now.monotonic):
            self.agenda.drop(job.uid)
            self._listener.want(job.uid, f"{job.namespace}/{decision.effect.policy}")

    def _leave_alone(self, uid: str, seconds: float | None) -> None:
        """Leave a job alone that was set aside for so long, if it was."""
        if seconds is not None:
            self.postpone(uid, seconds)

    def _decide(self, job: JobView, now: Moment, *, live: bool) -> Decision:
        queue, ties = self.queue_of(job), self.kinship.ties(job)
        lacks = bool(ties.absent) and not job.wishes.suspend
        known = not queue.limited or self.roll_calls.knows(job)
        before = self._seen.get(job.uid)
        seen = sight(before, job, queue, now, live=live, lacks=lacks, known=known)
        if job.uid in self.store:
            self._seen[job.uid] = seen
        holder, rival = self.workers.holder(job), self.store.rival(job)
        missing = self.roll_calls.missing(job) if queue.unknown_is_dead_letter else None
        placed = queue.limited and self.halls.is_placed(job)
        snapshot = Snapshot(
            job,
            seen,
            self._options,
            queue,
            holder,
            rival,
            missing,
            placed,
            known,
            ties,
            refused=self._refused.get(job.uid, 0),
            rerun_after=self._rerun_after.get(job.uid, 0.0),
        )
        return decide(snapshot, now)

    def _retire(self, job: JobView) -> None:
        if not is_redrive_wished(job):
            self.store.retire(job, self._now().wall)
        self._seen.pop(job.uid, None)

    def _look_at_finished(self, uid: str) -> None:
        """Have a finished job run again as somebody wants, once that was left alone long enough."""
        known = self.store.known(uid)
        if known and self._now().monotonic >= self._rerun_after.get(uid, math.inf):
            self._listener.want(uid, f"{known.namespace}/{rerun.NAME}")

    def _look_at_many(self, uids: Sequence[str]) -> None:
        """Look at these jobs; at many bit by bit, so that others have their turn in between."""
        if len(uids) <= AT_ONCE:
            self._look_at(uids)
        else:
            self.agenda.add_all(uids)

    def _look_at(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self.look(uid)

    def _look_at_contenders(self, job: JobView, before: tuple[str, ...]) -> None:
        """Look at those for whom it matters that the first two with an id are not who they were.

        All others are duplicates of a job before them, as they were. Once the id is free, a dead
        letter whose redrive was refused for it may run again.
        """
        now = self.store.contenders(job)
        if now == before:
            return
        self._look_at([uid for uid in {*before[:1], *now[:1]} if uid != job.uid])
        if not now:
            self._look_at_many([uid for uid in self.store.closed_with(job) if uid != job.uid])

    def _pod_changed(self, namespace: str, pod_uid: str) -> None:
        self._look_at_many(self.store.held_by(namespace, pod_uid))

    def _roll_changed(self, queue: tuple[str, str], concerned: Concerned) -> None:
        """Look at the jobs of types that workers of the queue know from now on, or no longer do."""
        view = self.queues.view(*queue)
        if not (view.limited or view.unknown_is_dead_letter):
            return
        if concerned.every:
            self._look_at_many(self.store.in_queue(queue))
            return
        for job_type in concerned.types:
            self._look_at_many(self.store.of_type(queue, job_type))

    def _queue_changed(self, namespace: str, queue: str) -> None:
        """Count at once who runs, or places would be given twice; all else may come bit by bit."""
        for uid in self.store.occupying((namespace, queue)):
            job = self.store.get(uid)
            if job:
                self.halls.count(job)
        self._look_at_many(self.store.in_queue((namespace, queue)))


def _subject(job: JobView) -> Subject:
    return Subject(Kind.JOB, job.namespace, job.name, job.resource_version)
