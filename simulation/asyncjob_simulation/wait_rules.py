"""What must hold of steps, and of waits for a time, a signal or children, by each version of a job.

Written from what is promised to users, as `invariants.py` is.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from asyncjob.lifecycle.timestamps import parse_timestamp
from asyncjob.names import GROUP, JOBS
from asyncjob_simulation.apiserver.storage import Change
from asyncjob_simulation.clocks import true_time
from asyncjob_simulation.step_handlers import StepRecord

Object = dict[str, Any]
Broken = Callable[[str, str, str], None]

KEPT: Final = "a step is stored once and never changed"
PARK: Final = "a park costs nothing"
ENDED: Final = "a handler has ended when its job is parked"
WOKEN: Final = "a job is woken when something that it waits for is over"
WAKES: Final = "what is over wakes its job"
ONCE: Final = "a signal is never changed"
IN_TIME: Final = "a signal is there, or has timed out, never both"
WHO: Final = "who may not signal sends nothing"

_FINISHED: Final = frozenset({"Succeeded", "Cancelled", "DeadLetter"})
_BUDGETS: Final = ("retries", "crashes", "releases", "history")
_AT_ONCE_SECONDS: Final = 1.0
_SOON_SECONDS: Final = 30.0
"""After so long an operator should have woken a job whose wait is over."""


@dataclass
class WaitRules:
    """Watches the waits of one simulation; `strangers` are users who may not signal."""

    record: StepRecord
    broken: Broken
    strangers: tuple[str, ...] = ()
    _parked_at: dict[str, float] = field(default_factory=dict)
    """When each job was parked last, by UID."""

    _sent_at: dict[tuple[str, str], float] = field(default_factory=dict)
    """When each signal was sent, by UID of its job and name."""

    _ended_at: dict[str, float] = field(default_factory=dict)
    """When each job that has finished, or is gone, did so, by UID."""

    def on_job(self, change: Change) -> None:
        """Judge a change of a job."""
        old, new = change.old, change.new
        self._note_end(old, new)
        if old is None or new is None:
            return
        self._check_signals(old, new)
        if old.get("status") != new.get("status"):
            was, status = old.get("status") or {}, new["status"]
            self._check_steps(new, was, status)
            self._check_phase(new, was, status)

    def check_woken(self) -> None:
        """Judge that no job is parked whose wait has been over for a while."""
        now, lately = true_time(self.record.calls.loop), self.record.calls.loop.time()
        for job in self.record.server.storage.collection((GROUP, JOBS)).objects.values():
            if not (job.get("status") or {}).get("waiting"):
                continue
            name, uid = job["metadata"]["name"], job["metadata"]["uid"]
            for key in self._over(job, now - _SOON_SECONDS, lately - _SOON_SECONDS):
                if lately - self._sent_at.get((uid, key), 0.0) > _SOON_SECONDS:
                    self.broken(WAKES, name, f"{key} is over, and it is still parked")

    # ---- steps

    def _check_steps(self, job: Object, was: Object, status: Object) -> None:
        name, uid = job["metadata"]["name"], job["metadata"]["uid"]
        before, after = was.get("steps") or {}, status.get("steps") or {}
        if before == after:
            return
        for key, record in before.items():
            if after.get(key) != record:
                self.broken(KEPT, name, f"{key} was {record}, and is {after.get(key)}")
        for key in after.keys() - before.keys():
            self.record.count("step stored")
            result = after[key].get("result")
            if result not in self.record.over[uid, key]:
                self.broken(KEPT, name, f"{key} is stored as {result}, which no body returned")
            if after[key].get("attempt") != status["attempt"]:
                words = f"{key} of attempt {after[key].get('attempt')} in {status['attempt']}"
                self.broken(KEPT, name, words)

    # ---- parks

    def _check_phase(self, job: Object, was: Object, status: Object) -> None:
        uid, phase, before = job["metadata"]["uid"], status["phase"], was.get("phase")
        if before == "Running" and phase != "Running":
            self._count_lost_bodies(uid, status)
        if before == "DeadLetter" and phase not in _FINISHED:
            self.record.forget_time_outs(uid)
            self.record.count("redriven" if status.get("steps") else "redriven without steps")
        if status.get("waiting") and not was.get("waiting"):
            self._check_park(job, was, status)
        elif was.get("waiting") and phase == "Queued":
            self._check_wake(job, was)

    def _count_lost_bodies(self, uid: str, status: Object) -> None:
        """Count attempts that ended after the body of a step, and before that was stored."""
        lost = {
            key
            for (owner, key), values in self.record.over.items()
            if owner == uid and values and key not in (status.get("steps") or {})
        }
        if lost:
            self.record.count("body lost")

    def _check_park(self, job: Object, was: Object, status: Object) -> None:
        name, uid = job["metadata"]["name"], job["metadata"]["uid"]
        self._parked_at[uid] = self.record.calls.loop.time()
        self.record.count("parked")
        if _waited_for(job["spec"], status):
            self.record.count("signal before the park was stored")
        for budget in _BUDGETS:
            if status.get(budget) != was.get(budget):
                words = f"{budget}: {was.get(budget)} before, {status.get(budget)} as it is parked"
                self.broken(PARK, name, words)
        if status.get("parks", 0) != was.get("parks", 0) + 1:
            self.broken(PARK, name, f"{was.get('parks', 0)} parks before, {status.get('parks')}")
        for run in self.record.calls.runs.get(uid, ()):
            if run.attempt == status["attempt"] and run.ended is None:
                self.broken(ENDED, name, f"attempt {run.attempt} in {run.process.name} has not")

    def _check_wake(self, job: Object, was: Object) -> None:
        meta = job["metadata"]
        now, moment = true_time(self.record.calls.loop), self.record.calls.loop.time()
        over = list(self._over({"spec": job["spec"], "status": was}, now, moment))
        if not over:
            self.broken(WOKEN, meta["name"], f"it waits for {was['waiting']}")
        parked_for = self.record.calls.loop.time() - self._parked_at[meta["uid"]]
        if parked_for < _AT_ONCE_SECONDS:
            self.record.count("promoted at once")
        self.record.count(f"woken by {self._what_woke(job, was)}")

    def _what_woke(self, job: Object, was: Object) -> str:
        if _waited_for(job["spec"], was):
            return "a signal"
        moment = self.record.calls.loop.time()
        return "children" if any(self._ended(one, moment) for one in was["waiting"]) else "time"

    # ---- what is over

    def _note_end(self, old: Object | None, new: Object | None) -> None:
        one = new or old or {}
        is_finished = (one.get("status") or {}).get("phase") in _FINISHED
        if new is None or is_finished:
            self._ended_at.setdefault(one["metadata"]["uid"], self.record.calls.loop.time())
        else:
            self._ended_at.pop(one["metadata"]["uid"], None)

    def _ended(self, wait: Object, moment: float) -> bool:
        """Return whether all children that a wait is for had ended by a moment."""
        children = wait.get("children") or ()
        ends = [self._ended_at.get(one["uid"], float("inf")) for one in children]
        return bool(ends) and max(ends) <= moment

    def _over(self, job: Object, now: float, moment: float) -> Iterator[str]:
        """Yield what a parked job waits for that is over.

        It was sent, its time had come by `now`, or all children had ended by `moment` of the loop.
        """
        signals = job["spec"].get("signals") or {}
        for one in job["status"]["waiting"]:
            until = one.get("until")
            is_sent = one["kind"] == "Signal" and one["key"] in signals
            is_late = bool(until) and parse_timestamp(until).timestamp() <= now
            if is_sent or is_late or self._ended(one, moment):
                yield one["key"]

    # ---- signals

    def _check_signals(self, old: Object, new: Object) -> None:
        name, status = new["metadata"]["name"], new.get("status") or {}
        before, after = old["spec"].get("signals") or {}, new["spec"].get("signals") or {}
        for signal, sent in before.items():
            if after.get(signal) != sent:
                self.broken(ONCE, name, f"{signal} was {sent}, and is {after.get(signal)}")
        for signal in after.keys() - before.keys():
            self._check_sent(new, old.get("status") or {}, signal)
        waits = status.get("waits") or {}
        for signal in after.keys() & waits.keys():
            if waits[signal].get("over"):
                self.broken(IN_TIME, name, f"{signal} has been sent, and has timed out")

    def _check_sent(self, job: Object, was: Object, signal: str) -> None:
        name, sent = job["metadata"]["name"], job["spec"]["signals"][signal]
        self._sent_at[job["metadata"]["uid"], signal] = self.record.calls.loop.time()
        if sent["sentBy"] in self.strangers:
            self.broken(WHO, name, f"{signal} was sent by {sent['sentBy']}")
        if was.get("phase") in _FINISHED:
            self.broken(IN_TIME, name, f"{signal} was sent to a job that is {was['phase']}")
        waits_for = {one["key"] for one in was.get("waiting") or ()}
        if signal in waits_for:
            self.record.count("signal during park")
        elif was.get("phase") == "Running":
            self.record.count("signal while it runs")
        else:
            self.record.count("signal early")


def _waited_for(spec: Object, status: Object) -> bool:
    """Return whether a signal has been sent that the parked job waits for."""
    signals = spec.get("signals") or {}
    return any(one["key"] in signals for one in status["waiting"])
