"""Jobs of the profile `jobs` that hang for ever, and the rule that no attempt goes on long."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from asyncjob_simulation.apiserver.storage import Change
from asyncjob_simulation.handlers import BLOCKS, ISOLATED, WAITS
from asyncjob_simulation.workload import Workload

Object = dict[str, Any]

LONG: Final = "no attempt goes on long beyond its time"

SOON_SECONDS: Final = 130.0
"""How long beyond its time an attempt may go on when nothing fails any more: the operator's margin,
an election, a comparison that shows what a watch has not told, and as much again as those two."""

_SEEDS: Final = 0.2
_JOBS: Final = 0.3
"""In how many seeds jobs hang, and how many of the jobs there."""

_LIMITS: Final = (15, 30)
"""How many seconds those may take: less than is left of a hang when the faults are over."""


class TimedWorkload(Workload):
    """Some jobs hang in their first attempt: it ends by the worker, or else by the operator."""

    def _options(self, number: int) -> Object:
        options, dice, name = super()._options(number), self.dice, f"job {number}"
        # A worker whose event loop is blocked costs its other jobs attempts.
        if self.swarm.is_gentle or not dice.happens("jobs hang", _SEEDS):
            return options
        if options["type"] in {"work", ISOLATED} and dice.happens(f"{name} hangs", _JOBS):
            how = dice.choice(f"{name} hangs how", (WAITS, BLOCKS))
            options["payload"].update(hangs=how, nap=0.0, steps=1, failsAt=1)
            options["executionTimeoutSeconds"] = dice.choice(f"{name} may take", _LIMITS)
        return options


class Clock(Protocol):
    """What tells the time, in seconds."""

    def time(self) -> float:
        """Return it."""


@dataclass
class TimeRules:
    """Watches how long the attempts of one simulation take."""

    loop: Clock
    count: Callable[[str], None]
    broken: Callable[[str, str, str], None]
    _running: dict[str, tuple[Object, float]] = field(default_factory=dict)
    """Each running job, and when it was claimed, by UID."""

    _calm_at: float = float("inf")

    def on_job(self, change: Change) -> None:
        """Learn of a change of a job."""
        job = change.new or change.old or {}
        status, uid = job.get("status") or {}, job["metadata"]["uid"]
        if change.new is None or status.get("phase") != "Running":
            if self._running.pop(uid, None) and status.get("reason") == "ExecutionTimeout":
                is_left = "its worker did not end it" in status["message"]
                self.count(f"ended at its time by {'an operator' if is_left else 'its worker'}")
            return
        known = self._running.get(uid)
        if known is None or known[0]["status"]["attempt"] != status["attempt"]:
            self._running[uid] = job, self.loop.time()

    def recover(self) -> None:
        """Count from now on: nothing goes wrong any more."""
        self._calm_at = self.loop.time()

    def look(self) -> None:
        """Judge how long attempts have taken since the faults are over."""
        for job, claimed_at in self._running.values():
            limit = job["spec"].get("executionTimeoutSeconds")
            taken = self.loop.time() - max(claimed_at, self._calm_at)
            if limit is not None and taken > limit + SOON_SECONDS:
                attempt = job["status"]["attempt"]
                words = f"attempt {attempt} may take {limit} s, and took {taken:.0f} s"
                self.broken(LONG, job["metadata"]["name"], words)
