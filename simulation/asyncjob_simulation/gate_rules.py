"""What jobs and arrays wait for before they start: their time, and what they depend on."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from asyncjob.lifecycle.timestamps import parse_timestamp

Object = dict[str, Any]

FINAL: Final = frozenset({"Succeeded", "Cancelled"})
ENDED: Final = FINAL | {"DeadLetter"}
_OVER: Final = ENDED | {"Failed"}
"""Ends of jobs and of arrays."""

CLOCK_TOLERANCE: Final = 7.0
"""How early a calendar time may come: clocks of replicas may be off by 5 s, unnoticed."""

NEWS_SECONDS: Final = 30.0
"""How late an operator may learn that a job it let others through for has been redriven since."""


@dataclass
class GateRules:
    """Keeps which jobs were let through, and when dead letters and failed arrays were redriven."""

    wall: Callable[[], float]
    """The true time, in seconds since the epoch."""

    _phases: dict[str, str] = field(default_factory=dict)
    """The last phase of each job and array that there was; those that are gone keep it.

    By name, and of arrays with `array/` before it.
    """

    _uids: dict[str, str] = field(default_factory=dict)
    """The UID of the one that has a name, or had it last."""

    _redriven_at: dict[str, float] = field(default_factory=dict)
    _let_through: set[str] = field(default_factory=set)
    """UIDs of the jobs that were let through while what they depend on had ended as they ask."""

    def take(self, job: Object) -> None:
        """Learn of a new version of a job, before a claim that it may be is judged."""
        uid = job["metadata"]["uid"]
        before, phase = self._take(job["metadata"]["name"], job)
        is_redriven = before in ENDED and phase not in ENDED
        if is_redriven or (before, phase) == ("Queued", "Pending"):
            self._let_through.discard(uid)
        if phase == "Queued" and not self._unmet(job["spec"], since=self.wall() - NEWS_SECONDS):
            self._let_through.add(uid)

    def take_array(self, array: Object) -> None:
        """Learn of a new version of an array."""
        self._take(f"array/{array['metadata']['name']}", array)

    def _take(self, name: str, obj: Object) -> tuple[str, str]:
        """Keep the phase of a job or array; return the one before, and the new one."""
        uid = obj["metadata"]["uid"]
        before = self._phases.get(name, "") if self._uids.get(name) == uid else ""
        phase = (obj.get("status") or {}).get("phase", "")
        self._phases[name], self._uids[name] = phase, uid
        if before in _OVER and phase not in _OVER:
            self._redriven_at[name] = self.wall()
        return before, phase

    def broken_by_start(self, array: Object) -> Iterator[tuple[str, str]]:
        """Yield the promises that the first chunk of an array breaks, and how."""
        spec = array["spec"]
        yield from self._too_early(spec)
        for name in self._unmet(spec, since=self.wall() - NEWS_SECONDS):
            phase = self._phases.get(name, "none")
            yield "dependencies first", f"a chunk is cut while {name} is {phase}"

    def _too_early(self, spec: Object) -> Iterator[tuple[str, str]]:
        not_before = spec.get("notBefore")
        if not_before and epoch(not_before) - self.wall() > CLOCK_TOLERANCE:
            yield "not before its time", f"started before {not_before}"

    def broken_by_claim(self, job: Object) -> Iterator[tuple[str, str]]:
        """Yield the promises that a claim of the job breaks, and how."""
        uid, spec = job["metadata"]["uid"], job["spec"]
        yield from self._too_early(spec)
        if uid not in self._let_through:
            for name in self._unmet(spec):
                phase = self._phases.get(name, "none")
                yield "dependencies first", f"claimed while {name} is {phase}"

    def _unmet(self, spec: Object, since: float = float("inf")) -> list[str]:
        """Return what has not ended as it must; a redrive since then is not looked at."""
        unmet = []
        for dependency in spec.get("dependsOn") or ():
            name, is_any = name_of(dependency), dependency.get("outcome") == "Any"
            met = self._phases.get(name) in (_OVER if is_any else {"Succeeded"})
            if not met and not (is_any and self._redriven_at.get(name, -1.0) >= since):
                unmet.append(name)
        return unmet


def name_of(dependency: Object) -> str:
    """Return the name of a job, or `array/` and that of an array."""
    return str(dependency.get("name") or f"array/{dependency['array']}")


def epoch(time: str) -> float:
    """Return the seconds since the epoch of a time as the API server writes it."""
    return parse_timestamp(time).timestamp()
