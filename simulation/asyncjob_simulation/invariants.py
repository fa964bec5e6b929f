"""What must hold whatever fails, judged by each version of each job and by the handlers' record.

Written from what is promised to users, not from the rules that the API server enforces: an error in
those would be an error here, and nobody would see it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from asyncjob.lifecycle.arrays.chunks import is_chunk_type
from asyncjob.names import (
    ARRAYS,
    CRON_JOB_LABEL,
    CRON_JOB_UID_LABEL,
    CRON_JOBS,
    GROUP,
    JOBS,
    OPERATOR_LEASE,
    QUEUES,
    SCHEDULED_TIME_ANNOTATION,
    WORKER_LEASE_PREFIX,
)
from asyncjob_simulation.apiserver import ApiServer
from asyncjob_simulation.apiserver.storage import Change
from asyncjob_simulation.clocks import true_time
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.event_loop import FIRST_MOMENT, SimulationLoop
from asyncjob_simulation.gate_rules import CLOCK_TOLERANCE, ENDED, FINAL, GateRules, epoch
from asyncjob_simulation.handlers import HandlerCalls, RecordedCall
from asyncjob_simulation.history import History
from asyncjob_simulation.processes import HEARTBEAT, MAIN, Process
from asyncjob_simulation.story import Recorder
from asyncjob_worker.cli import WorkerExitCode

Object = dict[str, Any]

ON_TIME_SECONDS: Final = 60.0
"""The deadline of a run whose cron job has none."""

LATE_SECONDS: Final = 90.0
"""How long a run that is on its way may take: its operator may stand still, its request be late."""

STILL_SECONDS: Final = 10.0
"""Since so long nobody may have written to a job when all is over."""

LEASES: Final = ("coordination.k8s.io", "leases")
TROUBLE_SECONDS: Final = 2.0
"""What went wrong with claims or heartbeats that long before the last one that was stored may still
be why no other came."""

TAKEN_AWAY: Final = frozenset({"LeaseExpired", "WorkerCrashed", "WorkerGone"})


@dataclass(frozen=True, slots=True)
class BrokenInvariant:
    """A promise that was broken, with the object that it was about."""

    promise: str
    about: str
    words: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.about}: {self.words}"


@dataclass(slots=True)
class _Lease:
    """What the API server has stored last of a lease."""

    worker: str
    actor: str
    renewed_at: float
    duration: float


@dataclass(frozen=True, slots=True)
class _Leader:
    """Who wrote the election's Lease last."""

    actor: str
    at: float
    duration: float


@dataclass
class Invariants:
    """Watches one simulation. `processes` maps a process's name to it."""

    server: ApiServer
    loop: SimulationLoop
    recorder: Recorder
    handlers: HandlerCalls
    processes: Mapping[str, Process]
    is_gentle: bool = False
    """Whether nothing may cost a job an attempt: requests alone go wrong, and few of them."""

    unanswered: Collection[str] = ()
    """Names of jobs whose claim was stored, and the answer lost."""

    answered: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """When the answer to a claim came last, by process and job."""

    hindered: Mapping[str, float] = field(default_factory=dict)
    """When a claim or heartbeat of a process went wrong last, by its name."""

    knows_jobs: set[str] = field(default_factory=set)
    """Names of the processes that have read the list of jobs."""

    on_job: Callable[[Change], None] = lambda _: None
    """Called with each change of a job."""

    violations: list[BrokenInvariant] = field(default_factory=list)
    deleted: set[str] = field(default_factory=set)
    known: dict[str, str] = field(default_factory=dict)
    """Name of each job that there ever was, by UID."""

    _places: dict[str, int] = field(default_factory=dict)
    _leases: dict[str, _Lease] = field(default_factory=dict)
    _lease_ends: dict[tuple[str, int], float] = field(default_factory=dict)
    """Until when the lease of each attempt lasted, as far as it was renewed, by UID and attempt."""

    _running: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    _runs_of_schedules: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _history: History = field(init=False)
    _gates: GateRules = field(init=False)
    _ended_at: dict[str, float] = field(default_factory=dict)
    """When each job ended last, by name."""

    _leader: _Leader | None = None
    _problems_seen: int = 0
    _last_write: tuple[float, str, str] = (0.0, "", "")
    """When somebody tried to write to a job last, who, and to which."""

    def __post_init__(self) -> None:
        self._history = History(true_time(self.loop))
        self._gates = GateRules(lambda: true_time(self.loop))

    def broken(self, promise: str, about: str, words: str) -> None:
        """Take down that a promise was broken."""
        violation = BrokenInvariant(promise, about, words)
        self.recorder.note("INVARIANT", str(violation), about)
        self.violations.append(violation)

    # ---- as it goes on

    def on_write(self, actor: str, method: str, path: str) -> None:
        """Take that somebody has tried to write, and judge what has been stored."""
        if f"/{JOBS}/" in path and method != "DELETE":  # what has ended is removed at its time
            self._last_write = self.loop.time(), actor, path.rsplit(f"/{JOBS}/", maxsplit=1)[-1]
        self.look(actor)

    def look(self, actor: str) -> None:
        """Judge what has been stored since the last time, by this actor."""
        for change in self._new_changes(JOBS):
            self._history.take(JOBS, change)
            self._on_job(actor, change)
            self.on_job(change)
        for resource in (QUEUES, CRON_JOBS, ARRAYS):
            for change in self._new_changes(resource):
                self._history.take(resource, change)
                if resource == ARRAYS and change.new is not None:
                    self._on_array(change.new, change.old or {})
        problems = self.handlers.problems
        for promise, name, words in problems[self._problems_seen :]:
            self.broken(promise, name, words)
        self._problems_seen = len(problems)

    def _new_changes(self, plural: str) -> Iterator[Change]:
        collection = self.server.storage.collection((GROUP, plural))
        place = self._places.get(plural, 0)
        if place == collection.end:
            return
        self._places[plural] = collection.end
        yield from collection.changes_from(max(place, collection.dropped))

    def _on_job(self, actor: str, change: Change) -> None:
        old, new = change.old, change.new
        if new is None:
            self._on_deleted(actor, old or {})
            return
        self._gates.take(new)
        if old is None:
            self._on_created(new)
        elif new.get("status") != old.get("status"):
            self._on_status(actor, new, old.get("status") or {}, new["status"])

    def _on_array(self, array: Object, was: Object) -> None:
        """Judge that an array starts after what it waits for; all else of arrays has its rules."""
        starts = _generation(array) > 0 and _generation(was) == 0
        for promise, words in self._gates.broken_by_start(array) if starts else ():
            self.broken(promise, array["metadata"]["name"], words)
        self._gates.take_array(array)

    def _on_status(self, actor: str, job: Object, was: Object, status: Object) -> None:
        name, uid = job["metadata"]["name"], job["metadata"]["uid"]
        before, phase = was.get("phase"), status.get("phase")
        if phase in ENDED and before not in ENDED:
            self._ended_at[name] = self.loop.time()
        if before in FINAL and (phase != before or status.get("result") != was.get("result")):
            self.broken("an end is an end", name, f"{before} became {phase}")
        if before == "Running":
            self._check_holder(actor, name, uid)
        if phase == "Running" and before != "Running":
            self._on_claim(actor, job, was, status)
        elif before == "Running" and phase != "Running":
            self._on_end(name, uid, job, status)
        elif phase == "Running" and status["lease"] != was.get("lease"):
            self._leases[uid].renewed_at = self.loop.time()
            self._note_end_of_lease(uid, status)
        saved = status.get("checkpoint")
        by = (saved or {}).get("attempt", status.get("attempt"))  # those of chunks do not say
        if saved != was.get("checkpoint") and by != status.get("attempt"):
            words = f"attempt {by} has left its checkpoint in {status['attempt']}"
            self.broken("a fenced attempt changes nothing", name, words)

    def _on_created(self, job: Object) -> None:
        meta, spec = job["metadata"], job["spec"]
        self.known[meta["uid"]] = meta["name"]
        self.recorder.count("job")
        schedule = (meta.get("labels") or {}).get(CRON_JOB_UID_LABEL)
        time = (meta.get("annotations") or {}).get(SCHEDULED_TIME_ANNOTATION)
        if schedule and time and "asyncjob.dev/trigger" not in meta["annotations"]:
            self.recorder.count("run of a cron job")
            if time in self._runs_of_schedules[schedule]:
                self.broken("each scheduled time once", meta["name"], f"{time} is run again")
            self._runs_of_schedules[schedule].add(time)
            self._check_lateness(meta, epoch(time))
        if spec.get("deduplicationId"):
            self.recorder.count("job with a deduplication id")

    def _check_lateness(self, meta: Object, time: float) -> None:
        """Judge that a run is created in time, where its cron job leaves out what is late."""
        owner = meta["labels"][CRON_JOB_LABEL]
        stored = self.server.storage.get((GROUP, CRON_JOBS), (meta["namespace"], owner))
        spec = stored["spec"] if stored else {}
        if spec.get("misfirePolicy") != "Skip" or spec.get("concurrencyPolicy") == "Replace":
            return
        late = true_time(self.loop) - time
        if late > spec.get("startingDeadlineSeconds", ON_TIME_SECONDS) + LATE_SECONDS:
            words = f"created {late:.0f} s after its time by {owner}, which skips what is late"
            self.broken("runs are created in time or not at all", meta["name"], words)

    def _check_retention(self, job: Object) -> None:
        """Judge that an operator has removed a job."""
        name, ttl = job["metadata"]["name"], job["spec"].get("ttlSecondsAfterFinished")
        kept = self.loop.time() - self._ended_at.get(name, self.loop.time())
        self.recorder.count("removed after its time")
        if ttl is not None and kept < ttl - CLOCK_TOLERANCE:
            words = f"removed {kept:.1f} s after its end, to be kept for {ttl} s"
            self.broken("what has ended is kept as long as asked", name, words)

    def _on_deleted(self, actor: str, job: Object) -> None:
        meta, status = job["metadata"], job.get("status") or {}
        self.deleted.add(meta["name"])
        if actor.startswith("operator"):
            self._check_retention(job)
        if status.get("phase") == "Running":
            self._leave_queue(job)
        # Its lease stays: a handler may begin with it when the answer to its claim comes late.

    # ---- claims

    def _on_claim(self, actor: str, job: Object, was: Object, status: Object) -> None:
        meta = job["metadata"]
        name, uid, now = meta["name"], meta["uid"], self.loop.time()
        if status.get("attempt", 0) != was.get("attempt", 0) + 1:
            self.broken("attempts are counted", name, f"attempt {status.get('attempt')}")
        lease = status["lease"]
        self._leases[uid] = _Lease(lease["worker"], actor, now, lease["durationSeconds"])
        self._note_end_of_lease(uid, status)
        for run in self.handlers.runs.get(uid, ()):
            if run.is_running and run.heeds_stops and not run.stood_still(now):
                words = f"claimed by {actor} while attempt {run.attempt} runs in {run.process.name}"
                self.broken("one live lease at a time", name, words)
        for promise, words in self._gates.broken_by_claim(job):
            self.broken(promise, name, words)
        self._enter_queue(job)

    def _note_end_of_lease(self, uid: str, status: Object) -> None:
        lease = self._leases[uid]
        self._lease_ends[uid, status["attempt"]] = lease.renewed_at + lease.duration

    def _enter_queue(self, job: Object) -> None:
        for group, limit in self._groups(job):
            members = self._running[group]
            members[job["metadata"]["uid"]] = 1
            if len(members) > 1:
                self.recorder.count("jobs of a limited queue at once")
            if len(members) > limit:
                words = f"{len(members)} jobs run in {group}, {limit} may"
                self.broken("limits are kept", job["metadata"]["name"], words)

    def _leave_queue(self, job: Object) -> None:
        for members in self._running.values():
            members.pop(job["metadata"]["uid"], None)

    def _groups(self, job: Object) -> Iterator[tuple[str, int]]:
        """Yield what the job counts in, and how many may run of that."""
        meta, spec = job["metadata"], job["spec"]
        queue = spec.get("queue", "default")
        stored = self.server.storage.get((GROUP, QUEUES), (meta["namespace"], queue))
        limits = stored["spec"] if stored else {}
        if limits.get("maxConcurrency"):
            yield f"queue {queue}", limits["maxConcurrency"]
        key = spec.get("concurrencyKey")
        if key and limits.get("maxConcurrencyPerKey"):
            yield f"queue {queue}, key {key}", limits["maxConcurrencyPerKey"]
        if spec.get("deduplicationId"):
            yield f"deduplication id {spec['deduplicationId']}", 1

    # ---- the election

    def on_leader(self, actor: str) -> None:
        """Judge who leads now, after a write to a Lease."""
        lease = self.server.storage.get(LEASES, (NAMESPACE, OPERATOR_LEASE))
        if lease is None or not actor.startswith("operator"):
            return
        spec, now, before = lease["spec"], self.loop.time(), self._leader
        if not spec.get("holderIdentity"):
            self._leader = None
            return
        if before is not None and before.actor != actor:
            self.recorder.count("leader changed")
            holder = self.processes.get(before.actor)
            if now - before.at < before.duration and holder and holder.is_alive:
                words = f"{actor} leads {now - before.at:.1f} s after {before.actor} last said so"
                self.broken("one operator leads at a time", OPERATOR_LEASE, words)
        if actor not in self.knows_jobs:
            self.broken("who leads knows the jobs", OPERATOR_LEASE, f"{actor} has not listed them")
        self._leader = _Leader(actor, now, spec["leaseDurationSeconds"])

    # ---- ends of attempts

    def _check_holder(self, actor: str, name: str, uid: str) -> None:
        """Judge who has written to a running job."""
        lease = self._leases.get(uid)
        if lease is None or not actor.startswith("worker"):
            return
        if actor != lease.actor:
            words = f"{actor} wrote to a job that {lease.actor} holds"
            self.broken("a fenced attempt changes nothing", name, words)

    def _on_end(self, name: str, uid: str, job: Object, status: Object) -> None:
        """Judge why a job is no longer running."""
        self._leave_queue(job)
        lease, reason = self._leases.pop(uid, None), status.get("reason", "")
        self.recorder.count(f"end: {reason or status['phase']}")
        if lease is not None and reason in TAKEN_AWAY:
            self._check_takeover(name, lease, reason)
        if reason == "Released":
            self._check_release(name, uid)
        if status["phase"] == "Succeeded":
            self._check_result(name, uid, job)

    def _check_release(self, name: str, uid: str) -> None:
        for run in self.handlers.runs.get(uid, ()):
            if run.is_running and not run.stood_still(self.loop.time()):
                words = f"released while attempt {run.attempt} runs in {run.process.name}"
                self.broken("a job is released once its handler has ended", name, words)

    def _check_takeover(self, name: str, lease: _Lease, reason: str) -> None:
        silent, holder = self.loop.time() - lease.renewed_at, self.processes.get(lease.actor)
        if silent < lease.duration and (reason == "LeaseExpired" or (holder and holder.is_alive)):
            words = f"{reason}: taken from {lease.actor} {silent:.1f} s after its last heartbeat"
            self.broken("a lease lasts as long as it says", name, words)
        if reason == "LeaseExpired" and holder and self._is_well(holder, lease):
            words = f"that of {lease.actor}, {silent:.1f} s after its last heartbeat"
            self.broken("no lease expires while its worker can renew it", name, words)
        if self.is_gentle:
            self.broken("lost answers cost no attempt", name, f"{reason} of {lease.actor}")

    def _is_well(self, holder: Process, lease: _Lease) -> bool:
        """Return whether nothing has kept a process from its heartbeats."""
        since = lease.renewed_at - TROUBLE_SECONDS
        now, seconds = self.loop.time(), self.loop.time() - since
        stood_still = any(holder.stood_still(now, seconds, one) for one in (MAIN, HEARTBEAT))
        hindered = self.hindered.get(holder.name, float("-inf")) > since
        return holder.is_alive and not stood_still and not hindered

    def _check_result(self, name: str, uid: str, job: Object) -> None:
        status = job["status"]
        attempt = status.get("attempt")
        by = (status.get("result") or {}).get("by")
        # Chunks of arrays say in theirs which items are done.
        if by != f"{uid}/{attempt}" and not is_chunk_type(job["spec"]["type"]):
            self.broken("a result is its attempt's", name, f"attempt {attempt} has that of {by}")
        if not any(run.attempt == attempt and run.returned for run in self.handlers.runs[uid]):
            self.broken("a result is its attempt's", name, f"no handler returned in {attempt}")

    # ---- handlers

    def on_handler(self, run: RecordedCall) -> None:
        """Judge that a handler begins."""
        lease = self._leases.get(run.uid)
        if run.name in self.unanswered:
            self.recorder.count("lost answer adopted")
        if run.stood_still(run.began) and not self._answered_since(run):
            return
        if lease is None or run.began > lease.renewed_at + lease.duration:
            self.broken("a handler begins with a lease", run.name, f"none in {run.process.name}")
        elif lease.actor != run.process.container.name:
            words = f"{run.process.name} begins what {lease.actor} holds"
            self.broken("a handler begins with a lease", run.name, words)

    def on_step(self, run: RecordedCall) -> None:
        """Judge that a handler goes on."""
        now = self.loop.time()
        late = now - self._lease_ends.get((run.uid, run.attempt), now)
        if late > 0 and run.can_be_stopped and not run.stood_still(now):
            words = f"attempt {run.attempt} in {run.process.name}, {late:.1f} s after its end"
            self.broken("no handler goes on beyond its lease", run.name, words)

    def _answered_since(self, run: RecordedCall) -> bool:
        """Return whether the answer to its claim was read only after its process stood still."""
        worker = run.process.container
        return self.answered.get((worker.name, run.name), float("-inf")) >= worker.last_held

    # ---- the end of all

    def check_signed_off(self, pod: str) -> None:
        """Judge that a worker that ended in good order is not taken for one that is there."""
        lease = self.server.storage.get(LEASES, (NAMESPACE, WORKER_LEASE_PREFIX + pod))
        if lease is not None and lease["spec"].get("holderIdentity"):
            words = f"{pod} has ended, and its Lease names it"
            self.broken("who ends in good order signs off", pod, words)

    def unfinished(self) -> list[str]:
        """Return the jobs that have not ended."""
        jobs = self.server.storage.collection((GROUP, JOBS)).objects.values()
        return [
            job["metadata"]["name"]
            for job in jobs
            if (job.get("status") or {}).get("phase") not in ENDED
        ]

    def untidy(self) -> list[tuple[str, str]]:
        """Return the queues whose status does not say what there is, and how it differs."""
        found = []
        jobs = self.server.storage.collection((GROUP, JOBS)).objects.values()
        for queue in self.server.storage.collection((GROUP, QUEUES)).objects.values():
            name, status = queue["metadata"]["name"], queue.get("status") or {}
            if status.get("reservations"):
                kept = ", ".join(one["name"] for one in status["reservations"])
                found.append((name, f"still reserved for {kept}"))
            there = Counter(
                job["status"]["phase"] for job in jobs if job["spec"].get("queue") == name
            )
            said = {one["phase"]: one["count"] for one in status.get("counts") or ()}
            if {phase: count for phase, count in said.items() if count} != dict(there):
                found.append((name, f"counts {said}, and there are {dict(there)}"))
        return found

    @property
    def is_still(self) -> bool:
        """Whether nobody has written for a while."""
        return self.loop.time() - self._last_write[0] >= STILL_SECONDS

    def check_exit(self, process: str, code: int, *, is_asked_to_end: bool) -> None:
        """Judge the exit code of a container."""
        if is_asked_to_end and code == WorkerExitCode.RESTART:
            words = "got SIGTERM, and ended as one that is to be started again"
            self.broken("who is asked to end ends", process, words)

    def check_all_ended(self, besides: Collection[str] = ()) -> None:
        """Judge that jobs have ended."""
        for name in self.unfinished():
            if name in besides:
                continue
            job = self.server.get(f"/apis/{GROUP}/v1alpha1/namespaces/work/{JOBS}/{name}")
            status = job.get("status") or {}
            words = f"{status.get('phase')} ({status.get('reason')}) at the end"
            self.broken("every accepted job ends", name, words)

    def at_end(self, accepted: Mapping[str, str]) -> None:
        """Judge what is left; `accepted` maps what was submitted to the name of its job."""
        self.check_all_ended()
        for queue, words in self.untidy():
            self.broken("a queue's status is true in the end", queue, words)
        _, actor, name = self._last_write
        if not self.is_still:
            self.broken("in the end all is quiet", name, f"{actor} still writes to it")
        there = set(self.known.values())
        for what, name in accepted.items():
            if name not in there:
                self.broken("nothing accepted is lost", name, f"{what} was accepted, and is gone")
        for rule, name, words in self._history.violations(true_time(self.loop)):
            self.broken(f"the audit's rule {rule}", name, words)
        elapsed = self.loop.time() - FIRST_MOMENT
        self.recorder.note("simulation", f"ends after {elapsed:.1f} s")


def _generation(array: Object) -> int:
    """Return how many chunks of an array had been cut."""
    return int((array.get("status") or {}).get("generation", 0))
