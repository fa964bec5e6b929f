"""What people do in a simulation: queues, cron jobs, submissions, and changes of their minds."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, Final

from asyncjob.errors import AsyncJobError
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
from asyncjob_simulation.clocks import time_text
from asyncjob_simulation.cluster import NAMESPACE, Cluster, Replica
from asyncjob_simulation.dice import Dice
from asyncjob_simulation.handlers import ISOLATED, RARE
from asyncjob_simulation.swarm import Swarm

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
MAX_ATTEMPTS: Final = 1000
"""More than any job has."""

_SHORT: Final = (0.0, 2.0)
"""How many seconds a step takes of a handler that ends soon."""

_LONG: Final = (1.0, 3.0)
"""The same of one whose lease needs heartbeats."""

_NAPS: Final = (0.5, 40.0)
"""How many seconds a handler sleeps before a step: with its slot if it is short, parked else."""


def queues_of(dice: Dice) -> list[str]:
    """Return the queues that a simulation has: few, so that much happens in each."""
    names, most = list(_LIMITS), dice.number("queues", 1, 2)
    first = dice.number("first queue", 0, len(names) - 1)
    return [names[(first + number) % len(names)] for number in range(most)]


@dataclass
class Workload:
    """Jobs, cron jobs and changes of one simulation, in its first `seconds`."""

    cluster: Cluster
    gateway: Gateway
    gateway_replica: Replica
    dice: Dice
    queues: Sequence[str]
    jobs: int
    seconds: float
    swarm: Swarm
    wrong: Callable[[str, str, str], None]
    accepted: dict[str, str] = field(default_factory=dict)
    """What was submitted, and the name of the job that it was accepted as."""

    rare_queues: Collection[str] = ()
    """Queues in which one worker serves a type alone, and leaves."""

    rare: set[str] = field(default_factory=set)
    """Names of jobs of that type."""

    pending: int = 0
    is_over: bool = False
    """Whether no more faults come."""

    _by_key: dict[str, str] = field(default_factory=dict)
    _names: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """Create queues, and plan all the rest."""
        for queue in self.queues:
            spec = {**_LIMITS[queue], "defaults": {"leaseDurationSeconds": self.swarm.leases[-1]}}
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
        for number in range(self._schedules):
            self._later(0.0, self._create_schedule, number)
        for number in range(self.dice.number("changes", 0, round(self.jobs * self.swarm.changes))):
            at = self.dice.between(f"change {number} at", 1.0, self.seconds)
            self._later(at, self._change, number)

    @property
    def _schedules(self) -> int:
        """How many cron jobs there are."""
        number = self.dice.number("schedules", 0, 3)
        return max(0, number - 2) if self.swarm.is_small else number

    def end(self) -> None:
        """Let all go on that people have stopped, and have no cron job run again."""
        self.is_over = True
        self._resume_jobs()
        for queue in self.queues:
            self._patch(queue_path(NAMESPACE, queue), {"paused": False})
        for number in range(self._schedules):
            self._patch(cron_job_path(NAMESPACE, f"cron-{number}"), {"suspend": True})

    def _resume_jobs(self) -> None:
        for name in list(self._names):
            self._patch(job_path(NAMESPACE, name), {"suspend": False})

    def cancel_rare(self) -> None:
        """Cancel the jobs that no worker serves any more."""
        for name in sorted(self.rare):
            self._patch(job_path(NAMESPACE, name), {"cancel": True})

    def delete_some(self) -> None:
        """Delete some jobs when all is over; whoever counts jobs has to notice."""
        count = self.dice.number("deleted in the end", 0, 3)
        for name in self._names[:count]:
            self._delete(name)

    def _delete(self, name: str) -> None:
        """Delete a job; its key may have another one then."""
        self.cluster.write(PEOPLE, "DELETE", job_path(NAMESPACE, name))
        self._by_key = {key: job for key, job in self._by_key.items() if job != name}

    def _later(self, seconds: float, function: Callable[..., object], *args: object) -> None:
        self.cluster.loop.call_later(seconds, function, *args, context=Context())

    # ---- submissions

    def _options(self, number: int) -> Object:
        dice, name, swarm = self.dice, f"job {number}", self.swarm
        queue = dice.choice(f"{name} queue", self.queues)
        payload = self._payload(name)
        options: Object = {
            "type": ISOLATED if dice.happens(f"{name} isolated", swarm.isolated) else "work",
            "queue": queue,
            "payload": payload,
            "priority": dice.choice(f"{name} priority", (0, 0, 0, 5, -5)),
            "leaseDurationSeconds": dice.choice(f"{name} lease", self.swarm.leases),
            "executionTimeoutSeconds": dice.choice(f"{name} timeout", (90, 180)),
            "retryPolicy": {
                "maxRetries": 6,
                "maxCrashes": 20,
                "initialDelaySeconds": dice.choice(f"{name} delay", swarm.retry_delays),
                "maxDelaySeconds": 10,
            },
        }
        if dice.happens(f"{name} kept", swarm.removed_early):
            options["ttlSecondsAfterFinished"] = dice.choice(f"{name} kept for", (20, 20, 60, 600))
        if self._is_rare(number):
            return {**options, "type": RARE}
        if dice.happens(f"{name} parent", 0.08):
            options["type"] = "parent"
            payload["children"] = dice.number(f"{name} children", 1, 3)
        if queue == "keyed":
            options["concurrencyKey"] = dice.choice(f"{name} key", ("a", "b"))
        self._add_relations(number, options)
        return options

    def _add_relations(self, number: int, options: Object) -> None:
        """Have a job wait for a time or another job, or be the only one of its id."""
        dice, name = self.dice, f"job {number}"
        if dice.happens(f"{name} later", 0.15):
            at = dice.between(f"{name} at", 0.0, self.seconds)
            options["notBefore"] = time_text(at + dice.between(f"{name} not before", 0.0, 40.0))
        if number and dice.happens(f"{name} depends", 0.15):
            other = dice.number(f"{name} on", max(0, number - 6), number - 1)
            outcome = dice.choice(f"{name} outcome", ("Succeeded", "Any"))
            if not self._is_rare(other):
                options["dependsOn"] = [{"name": f"job-{other}", "outcome": outcome}]
        if dice.happens(f"{name} unique", 0.2):
            options["deduplicationId"] = f"id-{dice.number(f'{name} id', 0, 2)}"

    def _is_rare(self, number: int) -> bool:
        name = f"job {number}"
        queue = self.dice.choice(f"{name} queue", self.queues)
        is_rare = self.dice.happens(f"{name} rare", self.swarm.rare_jobs)
        return is_rare and queue in self.rare_queues

    def _payload(self, name: str) -> Object:
        """Return what a job's handler is to do."""
        dice, swarm = self.dice, self.swarm
        payload: Object = {
            "steps": dice.number(name, 1, 3),
            "pause": round(dice.between(f"{name} pause", *_SHORT), 3),
            "failures": dice.choice(f"{name} failures", swarm.failures),
            "checkpoint": dice.happens(f"{name} checkpoint", 0.5),
        }
        if dice.happens(f"{name} long", swarm.long_jobs):
            pause = dice.between(f"{name} long pause", *_LONG) * swarm.slowness
            payload.update(steps=dice.number(f"{name} steps", 5, 10), pause=round(pause, 3))
            if dice.happens(f"{name} stubborn", swarm.stubborn):
                payload["ignoresStops"] = dice.choice(f"{name} stubborn in", (1, MAX_ATTEMPTS))
        if dice.happens(f"{name} naps", swarm.naps):
            payload["nap"] = round(dice.between(f"{name} nap", *_NAPS), 3)
        is_early = dice.happens(f"{name} fails early", 0.5)
        payload["failsAt"] = 1 if is_early else payload["steps"]
        return payload

    def _submit(self, number: int) -> None:
        way = self.dice.fraction(f"job {number} way")
        if way < 0.4 or self._is_rare(number):  # noqa: PLR2004  # shares of the ways to submit
            self._apply(f"job-{number}", self._options(number))
            return
        if way < 0.7:  # noqa: PLR2004
            content = self.dice.number(f"job {number} repeats", max(0, number - 3), number)
            content = number if self._is_rare(content) else content
            options = {**self._options(content), "idempotencyKey": f"key-{content}"}
        else:
            options = self._options(number)
            if "deduplicationId" not in options:  # which names the job
                options["name"] = f"job-{number}"
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
        if options["type"] == RARE:
            self.rare.add(name)
        if self.cluster.write(PEOPLE, "POST", path, body).status == 201:  # noqa: PLR2004  # created
            self._accept(name, name)

    def _finalizers(self, name: str) -> Object:
        """Return what keeps a deleted job there for others to look after, which nobody does."""
        is_kept = self.dice.happens(f"{name} final", self.swarm.finalizers)
        return {"finalizers": [FINALIZER]} if is_kept else {}

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
        self.cluster.recorder.remark(PEOPLE, str(answer))
        # One that is refused now may be taken later, when the job that is in its way has ended.
        self._try_again(number, options, tries if answer.retryable else tries // 4)

    def _try_again(self, number: int, options: Object, tries: int) -> None:
        if tries <= 1:
            self.pending -= 1
            return
        pause = self.dice.between(f"job {number} try {tries}", 0.2, 4.0)
        self._later(pause, self._send, number, options, tries - 1)

    def _accept(self, what: str, name: str) -> None:
        self.accepted[what] = name
        self._names.append(name)

    # ---- cron jobs and changes

    def _create_schedule(self, number: int) -> None:
        dice, name = self.dice, f"cron {number}"
        spec: Object = {
            "schedule": "* * * * *",
            "concurrencyPolicy": dice.choice(f"{name} policy", ("Allow", "Forbid", "Replace")),
            "misfirePolicy": dice.choice(
                f"{name} misfire", ("Skip", "Skip", "FireOnce", "FireAll")
            ),
            "successfulJobsHistoryLimit": dice.choice(f"{name} history", (1, 3)),
            "jobTemplate": {
                "spec": {
                    "type": "work",
                    "queue": self.queues[0],
                    "leaseDurationSeconds": self.swarm.leases[-1],
                    "retryPolicy": {"maxCrashes": 20, "initialDelaySeconds": 0},
                    "payload": {
                        "steps": 3,
                        "pause": dice.choice(f"{name} pause", (1, 10, 30)),
                        "failures": 0,
                    },
                }
            },
        }
        deadline = dice.choice(f"{name} deadline", (0, 0, 10))
        if deadline:
            spec["startingDeadlineSeconds"] = deadline
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
        job = dice.choice(f"{name} job", self._names)
        path = job_path(NAMESPACE, job)
        match dice.choice(f"{name} kind", ("cancel", "suspend", "priority", "rerun", "delete")):
            case "cancel":
                self._patch(path, {"cancel": True})
            case "suspend":
                self._patch(path, {"suspend": True})
                pause = dice.between(f"{name} pause", 1.0, 30.0)
                self._later(pause, self._patch, path, {"suspend": False})
            case "priority":
                self._patch(path, {"priority": 10})
            case "rerun" if job not in self.rare:  # the new one would be another of that type
                self._patch(path, {"rerun": 1})
            case "delete":
                self._delete(job)

    def _patch(self, path: str, spec: Object) -> None:
        self.cluster.write(PEOPLE, "PATCH", path, {"spec": spec})
