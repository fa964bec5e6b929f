"""Whose hands each job was in, by the recorded versions of jobs and pods alone. Pure.

A job has one lease at a time because it has one status. What this adds is the world outside: that
nobody took a job from a worker whose container had not ended.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from asyncjob.lifecycle.phases import Reason
from e2e.recording import Seen
from support.judging.checker import change_violations

Ends = Mapping[tuple[str, str], float]
"""When a container (UID of its pod, id) was first seen to have ended."""

NEVER = float("inf")
ORDER_SECONDS = 0.5
"""Jobs and pods come by two watches."""
TAKEN = {Reason.WORKER_CRASHED, Reason.WORKER_GONE, Reason.LEASE_EXPIRED}


@dataclass(frozen=True)
class LeasePeriod:
    """One attempt of a job in the hands of one worker process; `ended` is NEVER while it is."""

    job: str
    claim: str
    pod_uid: str
    worker: str
    began: float
    ended: float = NEVER
    reason: str = ""
    """Of the version that ended it; empty after a success."""


def broken_rules(jobs: Iterable[Seen]) -> list[str]:
    """Return the rules that any step of any job breaks, as the independent checker knows them."""
    return [
        f"{before.object['metadata']['name']}: {what}"
        for versions in _by_uid(jobs).values()
        for before, after in pairwise(versions)
        if after.kind != "DELETED"
        for what in change_violations(before.object, after.object)
    ]


def lease_periods(jobs: Iterable[Seen]) -> list[LeasePeriod]:
    """Return every attempt that was seen, in no order."""
    return [period for versions in _by_uid(jobs).values() for period in _of_one(versions)]


def ends(pods: Iterable[Seen], container: str = "worker") -> dict[tuple[str, str], float]:
    """Return when each container of that name was first seen to have ended."""
    found: dict[tuple[str, str], float] = {}
    for seen in pods:
        for identity in _ended(seen.object, container):
            found.setdefault((seen.object["metadata"]["uid"], identity), seen.at)
    return found


def stolen(held: Iterable[LeasePeriod], over: Ends) -> list[str]:
    """Return the attempts that were taken from a process that was not known to have ended.

    Processes of a pod are told by the order of their claims, containers by that of their ends.
    """
    every = list(held)
    order: dict[str, list[str]] = defaultdict(list)
    for period in sorted(every, key=lambda period: period.began):
        if period.worker not in order[period.pod_uid]:
            order[period.pod_uid].append(period.worker)
    return [
        f"{period.job} was taken from {period.worker}: {period.reason}"
        for period in every
        if period.reason in TAKEN
        and not _over(period, order[period.pod_uid].index(period.worker), over)
    ]


def _over(period: LeasePeriod, which: int, over: Ends) -> bool:
    times = sorted(at for (uid, _), at in over.items() if uid == period.pod_uid)
    return len(times) > which and times[which] <= period.ended + ORDER_SECONDS


def _of_one(versions: Iterable[Seen]) -> Iterator[LeasePeriod]:
    held: LeasePeriod | None = None
    for seen in versions:
        status = seen.object["status"]
        lease = status.get("lease")
        if held and (lease is None or status["claim"] != held.claim):
            yield _closed(held, seen.at, status.get("reason", ""))
            held = None
        if lease and not held:
            name = seen.object["metadata"]["name"]
            held = LeasePeriod(name, status["claim"], lease["holderUID"], lease["worker"], seen.at)
    if held:
        yield held


def _closed(held: LeasePeriod, at: float, reason: str) -> LeasePeriod:
    return LeasePeriod(held.job, held.claim, held.pod_uid, held.worker, held.began, at, reason)


def _ended(pod: Mapping[str, Any], container: str) -> Iterator[str]:
    for status in pod["status"].get("containerStatuses", ()):
        for state in ("state", "lastState"):
            terminated = status.get(state, {}).get("terminated")
            if terminated and status["name"] == container:
                yield terminated["containerID"]


def _by_uid(jobs: Iterable[Seen]) -> dict[str, list[Seen]]:
    found: dict[str, list[Seen]] = defaultdict(list)
    for seen in jobs:
        found[seen.object["metadata"]["uid"]].append(seen)
    return found
