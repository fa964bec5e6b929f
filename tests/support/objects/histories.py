"""Histories of jobs as `audit record` writes them, made by hand: each method is one write.

What a method writes is what the life of a job demands, so that what is made with them is good
unless a test breaks it.
"""

import copy
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from asyncjob.audit.history_file import FORMAT

START = datetime(2026, 11, 23, 12, tzinfo=UTC)
NAMESPACE = "tests"
JOBS, QUEUES, CRON_JOBS = "asyncjobs", "asyncqueues", "asynccronjobs"
ARRAYS = "asyncarrays"
EFFECTIVE = {
    "maxRetries": 3,
    "backoff": "Exponential",
    "initialDelaySeconds": 5,
    "maxDelaySeconds": 60,
    "jitter": 0,
    "retryOn": [],
    "noRetryOn": [],
    "maxCrashes": 3,
    "executionTimeoutSeconds": 1800,
    "leaseDurationSeconds": 60,
}
CONDITIONS = {"Succeeded": "Complete", "DeadLetter": "Failed", "Cancelled": "Cancelled"}
Line = dict[str, Any]


class HistoryBuilder:
    """The lines of one recording. `clock` is in seconds since it began."""

    def __init__(self) -> None:
        self.clock = 0.0
        self.lines: list[Line] = []
        self.objects: dict[str, Any] = {}
        self._places: dict[str, Any] = {}
        self._version = 100
        self.add("start", format=FORMAT, version="0", namespace=NAMESPACE, contents="digests")
        for resource in (QUEUES, CRON_JOBS, ARRAYS, JOBS):
            self.list_empty(resource)

    def list_empty(self, resource: str, *, gap: bool = False) -> None:
        self.add("list", resource=resource, gap=gap)
        self.add("listEnd", resource=resource, resourceVersion=str(self._version))

    def relist(self) -> None:
        """List the jobs again, as after a gap."""
        self.add("list", resource=JOBS, gap=True)
        for obj in self.objects.values():
            self._version_line("LISTED", JOBS, obj)
        self.add("listEnd", resource=JOBS, resourceVersion=str(self._version))

    def add(self, line: str, **fields: Any) -> Line:
        made = {"line": line, "time": self.now(), **fields}
        self.lines.append(made)
        return made

    def end(self, after: float = 120.0) -> list[Line]:
        """End the recording some time later, and return its lines."""
        self.clock += after
        self.add("end", versions=0, gaps=0)
        return self.lines

    def now(self, milliseconds: bool = True) -> str:
        moment = START + timedelta(seconds=self.clock)
        spec = "milliseconds" if milliseconds else "seconds"
        return moment.isoformat(timespec=spec).replace("+00:00", "Z")

    def next_version(self) -> str:
        self._version += 1
        return str(self._version)

    # ---- writes to jobs

    def create(self, name: str, *, annotations: Any = None, labels: Any = None, **spec: Any) -> str:
        meta = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}-{self._version}"}
        meta |= {"creationTimestamp": self.now(milliseconds=False)}
        meta |= {"annotations": annotations} if annotations else {}
        meta |= {"labels": labels} if labels else {}
        counters = {"attempt": 0, "retries": 0, "crashes": 0, "releases": 0, "redrives": 0}
        self.objects[name] = {
            "metadata": meta,
            "spec": {"type": "echo", "queue": "default", "priority": 0, **spec},
            "status": {"phase": "Queued", **counters, "reruns": 0},
        }
        self._write_job("ADDED", name)
        return name

    def write(self, name: str, *, drop: tuple[str, ...] = (), **status: Any) -> Line:
        """Write fields of a job's status."""
        obj = self.objects[name]
        kept = {key: value for key, value in obj["status"].items() if key not in drop}
        self.objects[name] = {**obj, "status": {**kept, **status}}
        return self._write_job("MODIFIED", name)

    def change_spec(self, name: str, **spec: Any) -> Line:
        """Write fields of a job's spec."""
        obj = self.objects[name]
        self.objects[name] = {**obj, "spec": {**obj["spec"], **spec}}
        return self._write_job("MODIFIED", name)

    def mark(self, name: str, **metadata: Any) -> Line:
        """Write metadata of a job."""
        obj = self.objects[name]
        self.objects[name] = {**obj, "metadata": {**obj["metadata"], **metadata}}
        return self._write_job("MODIFIED", name)

    def claim(self, name: str, worker: str = "worker-0", seconds: int = 60) -> Line:
        obj, now = self.objects[name], self.now()
        attempt = obj["status"]["attempt"] + 1
        policy = EFFECTIVE | {"leaseDurationSeconds": seconds}
        lease: Line = {"holder": worker, "holderUID": f"pod-{worker}", "worker": f"{worker}/1"}
        lease |= {"acquireTime": now, "renewTime": now, "renewals": 0, "durationSeconds": seconds}
        first = {} if attempt > 1 else {"firstStartTime": now}
        return self.write(
            name,
            drop=("reason", "message"),
            phase="Running",
            attempt=attempt,
            claim=f"claim-{name}-{attempt}",
            effective=policy,
            lease=lease,
            startTime=now,
            **first,
        )

    def renew(self, name: str, **report: Any) -> Line:
        lease = self.objects[name]["status"]["lease"]
        renewed = {**lease, "renewals": lease["renewals"] + 1, "renewTime": self.now()}
        return self.write(name, lease=renewed, **report)

    def move(
        self, name: str, phase: str, reason: str = "", *, drop: tuple[str, ...] = (), **more: Any
    ) -> Line:
        """Write any change of phase but a claim."""
        status = self.objects[name]["status"]
        entry = {"time": self.now(), "phase": phase, "attempt": status["attempt"]}
        history = [*status.get("history", []), entry]
        gone = [*drop, "reason", "retryDelaySeconds", "nextAttemptTime", "completionTime"]
        gone += ["conditions"]
        if status["phase"] == "Running":
            gone += ["lease", "admitted"]
        fields: dict[str, Any] = {"phase": phase, "history": history[-20:]}
        if len(history) > 20:
            fields["historyOmitted"] = status.get("historyOmitted", 0) + 1
        if reason:
            fields["reason"] = reason
        if phase in CONDITIONS:
            condition = {"type": CONDITIONS[phase], "status": "True"}
            fields |= {"completionTime": self.now(), "conditions": [condition]}
        if phase == "Retrying":
            fields |= {"retryDelaySeconds": 5, "nextAttemptTime": self.now()}
        return self.write(name, drop=tuple(gone), **fields, **more)

    def succeed(self, name: str) -> Line:
        return self.move(name, "Succeeded", result={"digest": "r"}, progress={"percent": 100})

    def fail(self, name: str) -> Line:
        retries = self.objects[name]["status"].get("retries", 0) + 1
        return self.move(name, "Retrying", "HandlerFailed", retries=retries, error={"type": "E"})

    def expire(self, name: str) -> Line:
        crashes = self.objects[name]["status"].get("crashes", 0) + 1
        again = "Queued" if crashes == 1 else "Retrying"
        return self.move(name, again, "LeaseExpired", crashes=crashes)

    def release(self, name: str, reason: str = "Released") -> Line:
        releases = self.objects[name]["status"].get("releases", 0) + 1
        return self.move(name, "Queued", reason, releases=releases)

    def promote(self, name: str, *, admitted: bool = False) -> Line:
        reasons = {
            "Retrying": "BackoffElapsed",
            "Pending": "GateOpened",
            "Scheduled": "StartTimeReached",
        }
        more: Line = {"admitted": True} if admitted else {}
        return self.move(name, "Queued", reasons[self.objects[name]["status"]["phase"]], **more)

    def redrive(self, name: str) -> Line:
        self.change_spec(name, redrive=1)
        fresh: Line = {"retries": 0, "crashes": 0, "releases": 0, "redrives": 1}
        return self.move(name, "Queued", "Redriven", **fresh)

    def delete(self, name: str) -> Line:
        line = self._write_job("DELETED", name)
        del self.objects[name]
        return line

    # ---- other resources

    def queue(self, name: str = "default", *, status: Any = None, **spec: Any) -> Line:
        meta = {"name": name, "namespace": NAMESPACE, "uid": f"uid-queue-{name}"}
        meta |= {"resourceVersion": self.next_version()}
        obj = {"metadata": meta, "spec": spec, "status": status or {}}
        return self._version_line("MODIFIED", QUEUES, obj)

    def reserve(self, *names: str, key: str = "", resumes: bool = False, **spec: Any) -> Line:
        """Write a queue with these reservations and no others; those it had stay as they were.

        New ones are of jobs that go on after a wait, if it says so.
        """
        goes_on: Line = {"resumes": True} if resumes else {}
        self._places = {
            name: self._places.get(name)
            or {"name": name, "uid": self.uid(name), "time": self.now(), "key": key, **goes_on}
            for name in names
        }
        return self.queue(status={"reservations": [*self._places.values()]}, **spec)

    def schedule(self, name: str, *, settled: str = "", **spec: Any) -> Line:
        meta = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}"}
        meta |= {"resourceVersion": self.next_version()}
        status = {"settledTime": settled} if settled else {}
        return self._version_line(
            "MODIFIED", CRON_JOBS, {"metadata": meta, "spec": spec, "status": status}
        )

    def run_of(self, schedule: str, minute: int) -> str:
        """Create the job of a schedule's time."""
        labels = {
            "asyncjob.dev/cron-job": schedule,
            "asyncjob.dev/cron-job-uid": f"uid-{schedule}",
        }
        time = f"2026-11-23T12:{minute:02}:00Z"
        name = f"{schedule}-20261123t12{minute:02}z"
        return self.create(name, labels=labels, annotations={"asyncjob.dev/scheduled-time": time})

    def uid(self, name: str) -> str:
        uid: str = self.objects[name]["metadata"]["uid"]
        return uid

    def _write_job(self, event: str, name: str) -> Line:
        obj = self.objects[name]
        self.objects[name] = obj = {
            **obj,
            "metadata": {**obj["metadata"], "resourceVersion": self.next_version()},
        }
        return self._version_line(event, JOBS, obj)

    def _version_line(self, event: str, resource: str, obj: Any) -> Line:
        written = self.now(milliseconds=False)
        return self.add("version", resource=resource, event=event, written=written, object=obj)


def large_history(jobs: int, seed: int = 0) -> Iterator[Line]:
    """Yield a good history of so many jobs that live at one time, without keeping it.

    Of ten jobs seven just succeed; the others fail, lose their worker, are released or given up.
    """
    builder, chance = HistoryBuilder(), random.Random(seed)

    def drain() -> Iterator[Line]:
        yield from builder.lines
        builder.lines.clear()

    for number in range(jobs):
        builder.clock += 0.001
        key = {"idempotencyKey": f"key-{number}"} if number % 5 == 0 else {}
        builder.create(
            f"job-{number:06}", annotations={"asyncjob.dev/submitted-content": "c"}, **key
        )
        yield from drain()
    for number in range(jobs):
        name = f"job-{number:06}"
        builder.clock += 0.002
        worker = f"worker-{number % 20}"
        builder.claim(name, worker)
        fate = chance.randrange(10)
        if fate == 7:
            builder.fail(name)
            builder.promote(name)
            builder.claim(name, worker)
        elif fate == 8:
            builder.renew(name, checkpoint={"digest": "one"})
            builder.release(name)
            builder.claim(name, worker)
        elif fate == 9:
            builder.move(name, "DeadLetter", "NotRetryable", error={"type": "E"})
            builder.redrive(name)
            builder.claim(name, worker)
        builder.succeed(name)
        # The builder's own memory is not what is measured.
        builder.objects.pop(name)
        yield from drain()
    builder.end()
    yield from drain()


def broken(lines: list[Line], line: Line, change: Any) -> list[Line]:
    """Return the lines with one of them changed: `change` is called with a copy of its object."""
    at = next(index for index, one in enumerate(lines) if one is line)
    changed = copy.deepcopy(line)
    change(changed["object"])
    return [*lines[:at], changed, *lines[at + 1 :]]
