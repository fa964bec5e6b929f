"""What happens in a case, told once for all parts; and what every run of it must come to."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from asyncjob.names import ARRAYS, CRON_JOBS, JOBS, QUEUES
from asyncjob_perturbation.cluster import Seen
from asyncjob_perturbation.people import People, WithKubectl
from asyncjob_perturbation.plan import LEASE_SECONDS

Object = dict[str, Any]

_STORY_SECONDS: Final = 90.0


class ScenarioContext:
    """Where a scenario runs: a namespace, and those who act in it."""

    def __init__(self, admin: WithKubectl, people: People, seen: Seen, folder: Path) -> None:
        self.people = people
        self._admin = admin
        self._seen = seen
        self._folder = folder

    async def queue(self, name: str, **spec: Any) -> None:
        """Create an AsyncQueue, and wait until the operator has seen it."""
        await self._admin.create(QUEUES, name, spec)
        await self._until(lambda: bool(self._seen.objects[QUEUES].get(name, {}).get("status")))

    async def schedule(self, name: str, **spec: Any) -> None:
        """Create an AsyncCronJob."""
        await self._admin.create(CRON_JOBS, name, spec)

    async def submit(self, name: str, kind: str, payload: Any = None, **spec: Any) -> None:
        """Submit a job."""
        await self.people.submit(name, job_spec(kind, payload, **spec))

    async def until(self, name: str, phase: str) -> None:
        """Wait until a job is in a phase."""
        await self._until(lambda: self._phase(name) == phase)

    async def until_existing(self, *names: str) -> None:
        """Wait until there are these jobs."""
        await self._until(lambda: all(map(self._phase, names)))

    async def submit_array(self, name: str, kind: str, **spec: Any) -> None:
        """Submit an array."""
        lease = {"leaseDurationSeconds": LEASE_SECONDS}
        await self.people.submit_array(name, {"type": kind, **lease, **spec})

    async def until_waiting(self, name: str) -> None:
        """Wait until a job is parked for a signal."""
        await self._until(lambda: self._status(JOBS, name).get("reason") == "WaitingForSignal")

    async def until_array(self, name: str, phase: str) -> None:
        """Wait until an array is in a phase."""
        await self._until(lambda: self._status(ARRAYS, name).get("phase") == phase)

    def mend(self) -> None:
        """Let handlers succeed that have given up."""
        (self._folder / "mended").touch()

    def _phase(self, name: str) -> str:
        return str(self._status(JOBS, name).get("phase", ""))

    def _status(self, resource: str, name: str) -> Object:
        found = self._seen.objects[resource].get(self.people.id_of(name), {})
        return dict(found.get("status", {}))

    async def _until(self, met: Callable[[], bool]) -> None:
        async with asyncio.timeout(_STORY_SECONDS):
            while not met():
                self._seen.changed.clear()
                await self._seen.changed.wait()


def job_spec(kind: str, payload: Any = None, **spec: Any) -> Object:
    """Return the spec of a job that is soon done, and soon found if its worker dies."""
    return {
        "type": kind,
        "payload": payload,
        "leaseDurationSeconds": LEASE_SECONDS,
        "executionTimeoutSeconds": 600,
        "retryPolicy": {
            "maxRetries": 5,
            "maxCrashes": 5,
            "initialDelaySeconds": 0,
            "maxDelaySeconds": 1,
            "jitter": 0,
        },
        **spec,
    }


@dataclass(frozen=True)
class Scenario:
    """One story, with the phases in which its jobs end."""

    name: str
    steps: Callable[[ScenarioContext], Awaitable[None]]
    ends: Mapping[str, str]
    from_start: bool = False
    """Whether the requests count with which a part starts; else those since the story began."""

    named_by_gateway: bool = False
    """Whether the gateway gives the jobs other names, from their ids."""


async def _plain(context: ScenarioContext) -> None:
    await context.submit("echo", "echo", {"a": 1})
    await context.submit("saves", "checkpointed")


async def _retry(context: ScenarioContext) -> None:
    await context.submit("flaky", "flaky", {"failures": 2})
    await context.submit("spent", "until-mended", retryPolicy={"maxRetries": 0})


async def _crash(context: ScenarioContext) -> None:
    await context.submit("fatal", "fatal-once")
    await context.until("fatal", "Succeeded")


async def _limit(context: ScenarioContext) -> None:
    await context.queue("default", maxConcurrency=1)
    for number in range(3):
        await context.submit(f"limited-{number}", "echo", number)


async def _cron(context: ScenarioContext) -> None:
    years = {"from": "2023-06-01T00:00:00Z", "to": "2025-06-01T00:00:00Z"}
    await context.schedule(
        "yearly",
        schedule="0 0 1 1 *",
        backfill=years,
        jobTemplate={"spec": job_spec("echo", "run")},
    )
    await context.people.trigger("yearly")
    await context.until_existing("yearly-t1")


async def _dependency(context: ScenarioContext) -> None:
    after = [{"name": "first"}]
    await context.submit("second", "echo", 2, dependsOn=after)
    await context.submit("whatever", "echo", 3, dependsOn=[{"name": "gives-up", "outcome": "Any"}])
    await context.submit("never", "echo", 4, dependsOn=[{"name": "gives-up"}])
    await context.submit("first", "echo", 1)
    await context.submit("gives-up", "until-mended")


async def _dedup(context: ScenarioContext) -> None:
    await context.submit("only", "echo", 1, deduplicationId="one", suspend=True)
    await context.until("only", "Pending")
    # Of those created within one second, to which creation times are rounded, either may be kept.
    await asyncio.sleep(1.0)
    await context.submit("other", "echo", 1, deduplicationId="one")
    if isinstance(context.people, WithKubectl):
        await context.until("other", "Cancelled")
    await context.people.resume("only")


async def _cancel(context: ScenarioContext) -> None:
    await context.submit("running", "long", cancelGraceSeconds=5)
    await context.submit("waiting", "echo", suspend=True)
    await context.until("running", "Running")
    await context.people.cancel("waiting")
    await context.people.cancel("running")


async def _redrive(context: ScenarioContext) -> None:
    await context.submit("dead", "until-mended")
    await context.until("dead", "DeadLetter")
    context.mend()
    await context.people.redrive("dead")
    await context.until("dead", "Succeeded")
    await context.people.rerun("dead")
    await context.until_existing("dead-r1")


async def _wait(context: ScenarioContext) -> None:
    await context.submit("waits", "waits")
    await context.submit("in-vain", "waits-in-vain")
    await context.until_waiting("waits")
    await context.people.signal("waits", "go", {"by": "people"})


async def _array(context: ScenarioContext) -> None:
    await context.submit_array(
        "sums",
        "sum",
        items={"count": 7},
        chunkSize=3,
        parallelism=2,
        itemRetries=0,
        retryPolicy={"maxRetries": 5, "maxCrashes": 5, "initialDelaySeconds": 0},
    )
    await context.until_array("sums", "Failed")
    context.mend()
    await context.people.redrive_array("sums")
    await context.until_array("sums", "Succeeded")


_TWICE: Final = {"flaky": "Succeeded", "spent": "DeadLetter"}
_THREE: Final = {f"limited-{number}": "Succeeded" for number in range(3)}
_YEARS: Final = {"yearly-t1": "Succeeded"}
_AFTER: Final = {
    "first": "Succeeded",
    "second": "Succeeded",
    "gives-up": "DeadLetter",
    "whatever": "Succeeded",
    "never": "DeadLetter",
}
SCENARIOS: Final = {
    one.name: one
    for one in (
        Scenario("plain", _plain, {"echo": "Succeeded", "saves": "Succeeded"}, from_start=True),
        Scenario("retry", _retry, _TWICE),
        Scenario("crash", _crash, {"fatal": "Succeeded"}),
        Scenario("limit", _limit, _THREE),
        Scenario("cron", _cron, _YEARS),
        Scenario("dependency", _dependency, _AFTER),
        Scenario(
            "dedup",
            _dedup,
            {"only": "Succeeded", "other": "Cancelled"},
            named_by_gateway=True,
        ),
        Scenario("cancel", _cancel, {"running": "Cancelled", "waiting": "Cancelled"}),
        Scenario("redrive", _redrive, {"dead": "Succeeded", "dead-r1": "Succeeded"}),
        Scenario("wait", _wait, {"waits": "Succeeded", "in-vain": "Succeeded"}),
        Scenario("array", _array, {}),
    )
}
