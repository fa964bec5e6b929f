"""What must hold of children and of deadlines, judged by each version of each job."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from asyncjob.lifecycle.timestamps import parse_timestamp
from asyncjob.names import GROUP, JOBS, PARENT_LABEL
from asyncjob_simulation.apiserver import ApiServer
from asyncjob_simulation.apiserver.storage import Change
from asyncjob_simulation.child_handlers import AWAITING
from asyncjob_simulation.clocks import true_time
from asyncjob_simulation.event_loop import SimulationLoop

Object = dict[str, Any]
Broken = Callable[[str, str, str], None]

ONCE: Final = "a child is submitted once, however often its parent runs"
EARLY: Final = "no job ends for a deadline that has not come"
LATE: Final = "no job goes on beyond its deadline"

_FINISHED: Final = frozenset({"Succeeded", "Cancelled", "DeadLetter"})
_ROUNDING_SECONDS: Final = 1.0
"""Creations are told in whole seconds."""

_SOON_SECONDS: Final = 90.0
"""After so long a job should have ended whose deadline has passed: its handler may ignore that."""


@dataclass
class ChildRules:
    """Watches the children and the deadlines of one simulation."""

    server: ApiServer
    loop: SimulationLoop
    count: Callable[[str], None]
    broken: Broken
    _submitted: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """How many children each job has been given, by UID."""

    def on_job(self, change: Change) -> None:
        """Judge a change of a job."""
        old, new = change.old, change.new
        if old is None and new is not None:
            self._check_child(new)
        if old is None or new is None:
            return
        status = new.get("status") or {}
        if status.get("reason") != "DeadlineExceeded" or old.get("status") == status:
            return
        self.count("deadline of a parked job" if _is_parked(old) else "deadline exceeded")
        early = _deadline(new) - true_time(self.loop) - _ROUNDING_SECONDS
        if early > 0:
            self.broken(EARLY, new["metadata"]["name"], f"it ended {early:.2f} s early")

    def _check_child(self, child: Object) -> None:
        uid = str((child["metadata"].get("labels") or {}).get(PARENT_LABEL, ""))
        jobs = self.server.storage.collection((GROUP, JOBS)).objects.values()
        parent = next((one for one in jobs if one["metadata"]["uid"] == uid), None)
        if parent is None or parent["spec"]["type"] != AWAITING:
            return
        self._submitted[uid] += 1
        wanted = sum(len(group["children"]) for group in parent["spec"]["payload"]["groups"])
        if self._submitted[uid] > wanted:
            words = f"{child['metadata']['name']} is number {self._submitted[uid]} of {wanted}"
            self.broken(ONCE, parent["metadata"]["name"], words)

    def check_calm(self) -> None:
        """Judge that no unfinished job is long past its deadline."""
        now = true_time(self.loop)
        for job in self.server.storage.collection((GROUP, JOBS)).objects.values():
            is_finished = (job.get("status") or {}).get("phase") in _FINISHED
            if is_finished or "deadlineSeconds" not in job["spec"]:
                continue
            late = now - _deadline(job)
            if late > _SOON_SECONDS:
                self.broken(LATE, job["metadata"]["name"], f"by {late:.0f} s")


def _deadline(job: Object) -> float:
    created = parse_timestamp(job["metadata"]["creationTimestamp"]).timestamp()
    return float(created + job["spec"]["deadlineSeconds"])


def _is_parked(job: Object) -> bool:
    return bool((job.get("status") or {}).get("waiting"))
