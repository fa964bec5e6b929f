"""What a job waits for before a worker may claim it: its time, and the jobs that it depends on."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from asyncjob.lifecycle.timestamps import parse_timestamp

Object = dict[str, Any]

FINAL: Final = frozenset({"Succeeded", "Cancelled"})
ENDED: Final = FINAL | {"DeadLetter"}
CLOCK_TOLERANCE: Final = 7.0
"""How early a calendar time may come: clocks of replicas may be off by 5 s, unnoticed."""

NEWS_SECONDS: Final = 30.0
"""How late an operator may learn that a job it let others through for has been redriven since."""


@dataclass
class GateRules:
    """Keeps which jobs were let through, and when dead letters were redriven."""

    wall: Callable[[], float]
    """The true time, in seconds since the epoch."""

    _phases: dict[str, str] = field(default_factory=dict)
    """The last phase of each job that there was, by name; those that are gone keep it."""

    _uids: dict[str, str] = field(default_factory=dict)
    """The UID of the job that has a name, or had it last."""

    _redriven_at: dict[str, float] = field(default_factory=dict)
    _let_through: set[str] = field(default_factory=set)
    """UIDs of the jobs that were let through while what they depend on had ended as they ask."""

    def take(self, job: Object) -> None:
        """Learn of a new version of a job, before a claim that it may be is judged."""
        name, uid = job["metadata"]["name"], job["metadata"]["uid"]
        before = self._phases.get(name, "") if self._uids.get(name) == uid else ""
        phase = (job.get("status") or {}).get("phase", "")
        self._phases[name], self._uids[name] = phase, uid
        is_redriven = before in ENDED and phase not in ENDED
        if is_redriven:
            self._redriven_at[name] = self.wall()
        if is_redriven or (before, phase) == ("Queued", "Pending"):
            self._let_through.discard(uid)
        if phase == "Queued" and not self._unmet(job["spec"], since=self.wall() - NEWS_SECONDS):
            self._let_through.add(uid)

    def broken_by_claim(self, job: Object) -> Iterator[tuple[str, str]]:
        """Yield the promises that a claim of the job breaks, and how."""
        uid, spec = job["metadata"]["uid"], job["spec"]
        not_before = spec.get("notBefore")
        if not_before and epoch(not_before) - self.wall() > CLOCK_TOLERANCE:
            yield "not before its time", f"claimed before {not_before}"
        if uid not in self._let_through:
            for name in self._unmet(spec):
                phase = self._phases.get(name, "none")
                yield "dependencies first", f"claimed while {name} is {phase}"

    def _unmet(self, spec: Object, since: float = float("inf")) -> list[str]:
        """Return what has not ended as it must; a redrive since then is not looked at."""
        unmet = []
        for dependency in spec.get("dependsOn") or ():
            name, is_any = dependency["name"], dependency.get("outcome") == "Any"
            met = self._phases.get(name) in (ENDED if is_any else {"Succeeded"})
            if not met and not (is_any and self._redriven_at.get(name, -1.0) >= since):
                unmet.append(name)
        return unmet


def epoch(time: str) -> float:
    """Return the seconds since the epoch of a time as the API server writes it."""
    return parse_timestamp(time).timestamp()
