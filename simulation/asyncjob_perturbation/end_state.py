"""What a scenario has come to, and how two such ends differ. Pure.

Times, versions, UIDs, names of workers and messages are left out: no two runs have the same. What
a crash may cost is allowed for and no more: attempts, and the crashes and releases that pay for
them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from asyncjob.names import ARRAYS, CRON_JOBS, JOBS, QUEUES
from asyncjob_perturbation.calls import without_random

Object = dict[str, Any]
Objects = Mapping[str, Mapping[str, Object]]
"""Resource → name → object."""

FINISHED: Final = frozenset({"Succeeded", "DeadLetter", "Cancelled"})
_ENDED_ARRAYS: Final = frozenset({"Succeeded", "Failed", "Cancelled"})

_JOB_FIELDS: Final = (
    "phase", "attempt", "retries", "crashes", "releases", "redrives", "reruns", "parks",
    "admitted", "lease", "result", "checkpoint", "waiting",
)  # fmt: skip
_NUMBERS: Final = frozenset(
    {"attempt", "retries", "crashes", "releases", "redrives", "reruns", "parks"}
)
_QUEUE_FIELDS: Final = ("counts", "reservations")
_CRON_FIELDS: Final = (
    "active", "activeCount", "triggers", "missed", "reserved", "lastScheduleTime", "backfill",
)  # fmt: skip
_ARRAY_FIELDS: Final = (
    "phase", "reason", "total", "next", "succeeded", "failed", "percent", "open", "requeued",
    "suspects", "failedItems", "failedUnlisted", "redrives",
)  # fmt: skip
_SPENT: Final = frozenset({"attempt", "crashes", "releases"})
_LABELS: Final = ("asyncjob.dev/cron-job", "asyncjob.dev/rerun-of")


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that is not as it should be."""

    where: str
    expected: object
    came: object

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expected!r}, came {self.came!r}"


def end_state(objects: Objects, versions: Iterable[Object] = ()) -> dict[str, Object]:
    """Return what is compared: `resource/name` → its fields.

    Crashes and releases are those since a job was created, by all its `versions`: a redrive sets
    what its status counts to 0.
    """
    state: dict[str, Object] = {}
    counted = _counted_ends(versions)
    for name, job in objects.get(JOBS, {}).items():
        state[f"{JOBS}/{without_random(name)}"] = _job_state(job) | counted.get(name, {})
    for resource, fields in (
        (QUEUES, _QUEUE_FIELDS),
        (CRON_JOBS, _CRON_FIELDS),
        (ARRAYS, _ARRAY_FIELDS),
    ):
        for name, obj in objects.get(resource, {}).items():
            status = obj.get("status", {})
            state[f"{resource}/{name}"] = {
                field: status[field] for field in fields if status.get(field)
            }
    return state


def _counted_ends(versions: Iterable[Object]) -> dict[str, dict[str, int]]:
    """Return by job how many crashes and releases were counted in all, where there were any."""
    last: dict[tuple[str, str], int] = {}
    total: dict[str, dict[str, int]] = {}
    for job in versions:
        name, status = job["metadata"]["name"], job.get("status", {})
        for field in ("crashes", "releases"):
            count = status.get(field, 0)
            if (more := count - last.get((name, field), 0)) > 0:
                counts = total.setdefault(name, {})
                counts[field] = counts.get(field, 0) + more
            last[name, field] = count
    return total


def is_finished(objects: Objects) -> bool:
    """Return whether every job and array has ended."""
    ended = ((JOBS, FINISHED), (ARRAYS, _ENDED_ARRAYS))
    return all(
        obj.get("status", {}).get("phase") in phases
        for resource, phases in ended
        for obj in objects.get(resource, {}).values()
    )


def is_counted(objects: Objects) -> bool:
    """Return whether the status of each queue counts all jobs and reserves nothing for ended ones.

    Counts are written every few seconds, reservations released a second after the last use.
    """
    jobs = objects.get(JOBS, {}).values()
    for name, queue in objects.get(QUEUES, {}).items():
        there = Counter(
            job.get("status", {}).get("phase")
            for job in jobs
            if job["spec"].get("queue", "default") == name
        )
        status = queue.get("status", {})
        counts = {one["phase"]: one["count"] for one in status.get("counts", [])}
        if counts != there or (status.get("reservations") and FINISHED.issuperset(there)):
            return False
    return True


def differences(
    expected: Mapping[str, Object], came: Mapping[str, Object], *, crashes: int
) -> list[Difference]:
    """Return where an end differs from the undisturbed one.

    A job may have had more attempts, one for each of the `crashes` of workers, if a crash or a
    release is counted for it.
    """
    found: list[Difference] = []
    for where in sorted({*expected, *came}):
        if where not in came or where not in expected:
            found.append(Difference(where, expected.get(where), came.get(where)))
            continue
        found += _field_differences(where, expected[where], came[where], crashes)
    return found


def _field_differences(
    where: str, expected: Object, came: Object, crashes: int
) -> Iterator[Difference]:
    spent = _extra(expected, came, "attempt")
    paid = _extra(expected, came, "crashes") + _extra(expected, came, "releases")
    if not 0 <= spent <= crashes:
        yield Difference(f"{where} attempt", expected.get("attempt"), came.get("attempt"))
    elif spent != paid:
        yield Difference(f"{where} crashes and releases", spent, paid)
    for field in sorted({*expected, *came} - _SPENT):
        if expected.get(field) != came.get(field):
            yield Difference(f"{where} {field}", expected.get(field), came.get(field))


def _extra(expected: Object, came: Object, field: str) -> int:
    return int(came.get(field, 0)) - int(expected.get(field, 0))


def _job_state(job: Object) -> Object:
    status, labels = job.get("status", {}), job["metadata"].get("labels", {})
    state = {field: status[field] for field in _JOB_FIELDS if status.get(field) is not None}
    state |= {field: value for field in _NUMBERS if (value := state.pop(field, 0))}
    if status.get("phase") in FINISHED:
        state["reason"] = status.get("reason")
        state["error"] = (status.get("error") or {}).get("type")
    state |= _kept(job)
    conditions = status.get("conditions", [])
    state["conditions"] = {one["type"]: one["status"] for one in conditions}
    state["labels"] = {name: labels[name] for name in _LABELS if name in labels}
    return state


def _kept(job: Object) -> Object:
    """Return what the job keeps of steps, waits and signals, if anything."""
    status, signals = job.get("status", {}), job.get("spec", {}).get("signals", {})
    kept = {
        "steps": {key: one.get("result") for key, one in status.get("steps", {}).items()},
        "waits": {key: one.get("over", False) for key, one in status.get("waits", {}).items()},
        "signals": {name: one.get("payload") for name, one in signals.items()},
    }
    return {name: what for name, what in kept.items() if what}
