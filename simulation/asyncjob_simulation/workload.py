"""What people do in a simulation: queues, schedules, submissions, and changes of their minds."""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from asyncjob.errors import AsyncJobError
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob.names import (
    API_VERSION,
    CRON_JOBS,
    JOBS,
    QUEUES,
    collection_path,
    cron_job_path,
    job_path,
    queue_path,
)
from asyncjob.rest.submission import Submission, Submitted
from asyncjob_simulation.actors import Gateway
from asyncjob_simulation.clocks import EPOCH
from asyncjob_simulation.cluster import NAMESPACE, Cluster, Replica
from asyncjob_simulation.dice import Dice
from asyncjob_simulation.event_loop import FIRST_MOMENT

Object = dict[str, Any]

PEOPLE: Final = "people"
FINALIZER: Final = "example.com/archive"
_LIMITS: Final[dict[str, Object]] = {
    "open": {},
    "narrow": {"maxConcurrency": 2},
    "keyed": {"maxConcurrencyPerKey": 1},
    "paced": {"rateLimit": {"count": 3, "periodSeconds": 5}},
}
_SUBMIT_TRIES: Final = 30
_SHORT: Final = (0.0, 2.0)
"""How many seconds a step takes of a handler that ends soon."""

_LONG: Final = (1.0, 3.0)
"""The same of one whose lease needs heartbeats."""


def queues_of(dice: Dice) -> list[str]:
    """Return the queues that a simulation has: few, so that much happens in each."""
    names, most = list(_LIMITS), dice.number("queues", 1, 2)
    first = dice.number("first queue", 0, len(names) - 1)
    return [names[(first + number) % len(names)] for number in range(most)]


@dataclass
class Workload:
    """Jobs, schedules and changes of one simulation, in its first `seconds`."""

    cluster: Cluster
    gateway: Gateway
    gateway_replica: Replica
    dice: Dice
    queues: Sequence[str]
    jobs: int
    seconds: float
    leases: Sequence[int]
    """How long leases may last, in seconds."""

    wrong: Callable[[str, str, str], None]
    accepted: dict[str, str] = field(default_factory=dict)
    """What was submitted, and the name of the job that it was accepted as."""

    pending: int = 0
    _by_key: dict[str, str] = field(default_factory=dict)
    _names: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """Create queues, and plan all the rest."""
        for queue in self.queues:
            spec = {**_LIMITS[queue], "defaults": {"leaseDurationSeconds": self.leases[-1]}}
            spec["retention"] = {"minAgeSeconds": 0}
            if queue == "narrow":
                spec["priorityAgeingSeconds"] = 10
            body = {
                "apiVersion": API_VERSION,
                "kind": "AsyncQueue",
                "metadata": {"name": queue},
                "spec": spec,
            }
            self.cluster.write(PEOPLE, "POST", collection_path(NAMESPACE, QUEUES), body)
        for number in range(self.jobs):
            at = self.dice.between(f"job {number} at", 0.0, self.seconds)
            self._later(at, self._submit, number)
        for number in range(self.dice.number("schedules", 0, 2)):
            self._later(0.0, self._create_schedule, number)
        for number in range(self.dice.number("changes", 0, self.jobs // 4)):
            at = self.dice.between(f"change {number} at", 1.0, self.seconds)
            self._later(at, self._change, number)

    def end(self) -> None:
        """Let all go on that people have stopped, and have no schedule run again."""
        for name in list(self._names):
            self._patch(job_path(NAMESPACE, name), {"suspend": False})
        for queue in self.queues:
            self._patch(queue_path(NAMESPACE, queue), {"paused": False})
        for number in range(self.dice.number("schedules", 0, 2)):
            self._patch(cron_job_path(NAMESPACE, f"cron-{number}"), {"suspend": True})

    def delete_some(self) -> None:
        """Delete some jobs when all is over; whoever counts jobs has to notice."""
        count = self.dice.number("deleted in the end", 0, 3)
        for name in self._names[:count]:
            self.cluster.write(PEOPLE, "DELETE", job_path(NAMESPACE, name))

    def _later(self, seconds: float, function: Callable[..., object], *args: object) -> None:
        self.cluster.loop.call_later(seconds, function, *args, context=Context())

    # ---- submissions

    def _options(self, number: int) -> Object:
        dice, name = self.dice, f"job {number}"
        queue = dice.choice(f"{name} queue", self.queues)
        is_long = dice.happens(f"{name} long", 0.25)
        steps = dice.number(f"{name} steps", 5, 10) if is_long else dice.number(name, 1, 3)
        payload: Object = {
            "steps": steps,
            "pause": round(dice.between(f"{name} pause", *(_LONG if is_long else _SHORT)), 3),
            "failures": dice.choice(f"{name} failures", (0, 0, 0, 1, 2)),
            "checkpoint": dice.happens(f"{name} checkpoint", 0.5),
            "ignoresStops": is_long and dice.happens(f"{name} stubborn", 0.2),
        }
        options: Object = {
            "type": "work",
            "queue": queue,
            "payload": payload,
            "priority": dice.choice(f"{name} priority", (0, 0, 0, 5, -5)),
            "leaseDurationSeconds": dice.choice(f"{name} lease", self.leases),
            "executionTimeoutSeconds": dice.choice(f"{name} timeout", (90, 180)),
            "retryPolicy": {
                "maxRetries": 6,
                "maxCrashes": 20,
                "initialDelaySeconds": dice.choice(f"{name} delay", (0, 1, 2)),
                "maxDelaySeconds": 10,
            },
        }
        if dice.happens(f"{name} kept", 0.2):
            options["ttlSecondsAfterFinished"] = dice.choice(f"{name} kept for", (20, 60, 600))
        if dice.happens(f"{name} parent", 0.08):
            options["type"] = "parent"
            payload["children"] = dice.number(f"{name} children", 1, 3)
        if queue == "keyed":
            options["concurrencyKey"] = dice.choice(f"{name} key", ("a", "b"))
        if dice.happens(f"{name} later", 0.15):
            at = dice.between(f"{name} at", 0.0, self.seconds)
            options["notBefore"] = _time(at + dice.between(f"{name} not before", 0.0, 40.0))
        if number and dice.happens(f"{name} depends", 0.15):
            other = dice.number(f"{name} on", max(0, number - 6), number - 1)
            outcome = dice.choice(f"{name} outcome", ("Succeeded", "Any"))
            options["dependsOn"] = [{"name": f"job-{other}", "outcome": outcome}]
        if dice.happens(f"{name} unique", 0.2):
            options["deduplicationId"] = f"id-{dice.number(f'{name} id', 0, 2)}"
        return options

    def _submit(self, number: int) -> None:
        way = self.dice.fraction(f"job {number} way")
        if way < 0.4:  # noqa: PLR2004  # shares of the ways to submit
            self._apply(f"job-{number}", self._options(number))
            return
        if way < 0.7:  # noqa: PLR2004
            content = self.dice.number(f"job {number} repeats", max(0, number - 3), number)
            options = {**self._options(content), "idempotencyKey": f"key-{content}"}
        else:
            options = {**self._options(number), "name": f"job-{number}"}
        self.pending += 1
        self._send(number, options, tries=_SUBMIT_TRIES)

    def _apply(self, name: str, options: Object) -> None:
        """Create a job past the gateway, as kubectl does."""
        body = {
            "apiVersion": API_VERSION,
            "kind": "AsyncJob",
            "metadata": {"name": name, **self._finalizers(name)},
            "spec": options,
        }
        path = collection_path(NAMESPACE, JOBS)
        if self.cluster.write(PEOPLE, "POST", path, body).status == 201:  # noqa: PLR2004  # created
            self._accept(name, name)

    def _finalizers(self, name: str) -> Object:
        """Return what keeps a deleted job there for others to look after, which nobody does."""
        return {"finalizers": [FINALIZER]} if self.dice.happens(f"{name} final", 0.15) else {}

    def _send(self, number: int, options: Object, tries: int) -> None:
        process = self.gateway_replica.process
        if process is None:
            self._try_again(number, options, tries)
            return
        task = self.gateway.submit(process, Submission.model_validate(options))

        def answered(done: "asyncio.Task[Submitted | AsyncJobError]") -> None:
            process.on_death.remove(died)
            self._answered(number, options, tries, done.result())

        def died() -> None:
            self._later(0.01, self._try_again, number, options, tries)

        process.on_death.append(died)
        task.add_done_callback(answered, context=Context())

    def _answered(
        self, number: int, options: Object, tries: int, answer: Submitted | AsyncJobError
    ) -> None:
        if isinstance(answer, Submitted):
            self.pending -= 1
            self._accept(f"submission {number}", answer.id)
            key = options.get("idempotencyKey")
            if key and self._by_key.setdefault(key, answer.id) != answer.id:
                words = f"key {key} was answered with {self._by_key[key]} before"
                self.wrong("one job for one key", answer.id, words)
            return
        self.cluster.recorder.note(PEOPLE, f"submission {number}: {type(answer).__name__}")
        self._try_again(number, options, tries)

    def _try_again(self, number: int, options: Object, tries: int) -> None:
        if tries <= 1:
            self.pending -= 1
            return
        pause = self.dice.between(f"job {number} try {tries}", 0.2, 4.0)
        self._later(pause, self._send, number, options, tries - 1)

    def _accept(self, what: str, name: str) -> None:
        self.accepted[what] = name
        self._names.append(name)

    # ---- schedules and changes

    def _create_schedule(self, number: int) -> None:
        dice, name = self.dice, f"cron {number}"
        spec = {
            "schedule": "* * * * *",
            "concurrencyPolicy": dice.choice(f"{name} policy", ("Allow", "Forbid", "Replace")),
            "misfirePolicy": dice.choice(f"{name} misfire", ("Skip", "FireOnce", "FireAll")),
            "successfulJobsHistoryLimit": dice.choice(f"{name} history", (1, 3)),
            "jobTemplate": {
                "spec": {
                    "type": "work",
                    "queue": self.queues[0],
                    "leaseDurationSeconds": self.leases[-1],
                    "retryPolicy": {"maxCrashes": 20, "initialDelaySeconds": 0},
                    "payload": {
                        "steps": 3,
                        "pause": dice.choice(f"{name} pause", (1, 10, 30)),
                        "failures": 0,
                    },
                }
            },
        }
        body = {
            "apiVersion": API_VERSION,
            "kind": "AsyncCronJob",
            "metadata": {"name": f"cron-{number}"},
            "spec": spec,
        }
        self.cluster.write(PEOPLE, "POST", collection_path(NAMESPACE, CRON_JOBS), body)

    def _change(self, number: int) -> None:
        """Change something about a job that was accepted before, or about a queue."""
        dice, name = self.dice, f"change {number}"
        if dice.happens(f"{name} of a queue", 0.2):
            queue = dice.choice(f"{name} queue", self.queues)
            self._patch(queue_path(NAMESPACE, queue), {"paused": True})
            self._later(
                dice.between(f"{name} pause", 1.0, 20.0),
                self._patch,
                queue_path(NAMESPACE, queue),
                {"paused": False},
            )
            return
        if not self._names:
            return
        path = job_path(NAMESPACE, dice.choice(f"{name} job", self._names))
        match dice.choice(f"{name} kind", ("cancel", "suspend", "priority", "rerun", "delete")):
            case "cancel":
                self._patch(path, {"cancel": True})
            case "suspend":
                self._patch(path, {"suspend": True})
                pause = dice.between(f"{name} pause", 1.0, 30.0)
                self._later(pause, self._patch, path, {"suspend": False})
            case "priority":
                self._patch(path, {"priority": 10})
            case "rerun":
                self._patch(path, {"rerun": 1})
            case "delete":
                self.cluster.write(PEOPLE, "DELETE", path)

    def _patch(self, path: str, spec: Object) -> None:
        self.cluster.write(PEOPLE, "PATCH", path, {"spec": spec})


def _time(seconds: float) -> str:
    """Return the true time so long after the beginning."""
    return format_timestamp(datetime.fromtimestamp(EPOCH + FIRST_MOMENT + seconds, UTC))
