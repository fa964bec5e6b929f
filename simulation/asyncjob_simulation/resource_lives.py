"""Generated lives of resources: A → B → C comes to what C comes to when it is made fresh.

Queues, cron jobs, arrays and control fields of jobs are changed several times, to what their
schemas allow and nobody thought of, while jobs flow and the operator may be restarted. Then the
same is done with what was last written alone, at the same moment of another simulation without that
past. What comes of the same jobs has to be the same in both, and as the fields say.
"""

import asyncio
import secrets
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import click

from asyncjob import WorkerApp
from asyncjob.names import (
    JOBS,
    QUEUES,
    job_path,
    queue_path,
)
from asyncjob_simulation.array_lives import (
    ARRAY_BEGINS_AT,
    ARRAY_CHANGES,
    array_app,
    array_life,
    array_promises,
    array_spec,
)
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.dice import Dice
from asyncjob_simulation.handlers import HandlerCalls, make_app
from asyncjob_simulation.life import prepare_process
from asyncjob_simulation.quiet_cluster import (
    SLOTS,
    STEP_SECONDS,
    Object,
    QuietCluster,
    play,
    work,
)
from asyncjob_simulation.schedule_lives import (
    SCHEDULE_BEGINS_AT,
    schedule_life,
    schedule_promises,
    schedule_spec,
)
from asyncjob_simulation.schema_values import made_value, spec_schema

CHANGES: Final = 3
_PROBE_SECONDS: Final = 200.0

_QUEUE_VALUES: Final[dict[str, Sequence[Any]]] = {
    "periodSeconds": (1, 2, 60),
    # What ends attempts and deletes jobs by the second depends on which second it is.
    "queueTimeoutSeconds": (86_400,),
    "executionTimeoutSeconds": (60, 3600),
    "maxDelaySeconds": (1, 5),
    "initialDelaySeconds": (0, 1),
    "maxAgeSeconds": (0, 315_360_000),
    "minAgeSeconds": (0, 315_360_000),
    "maxFinished": (0, 1_000_000),
    "retryOn": (["Internal"], ["Timeout"]),
    "noRetryOn": (["Internal"], ["Timeout"]),
}


@dataclass(frozen=True)
class LifeDifference:
    """What a life came to, and what it should have come to."""

    seed: int
    kind: str
    what: str
    lived: object
    expected: object
    life: Sequence[Object]

    def lines(self) -> list[str]:
        """Return it for people."""
        return [
            f"seed {self.seed}, {self.kind}: {self.what}",
            f"    after its life: {self.lived!r}",
            f"    expected:       {self.expected!r}",
            *(f"    spec {number}: {spec}" for number, spec in enumerate(self.life, start=1)),
        ]


# ---- queues


async def _queue_life(specs: Sequence[Object], begins_at: float, cluster: QuietCluster) -> Object:
    """Give a queue these specs one after the other, and see what it does with some jobs."""
    for number, spec in enumerate(specs):
        cluster.put("AsyncQueue", queue_path(NAMESPACE, "lived"), QUEUES, "lived", spec)
        if number < len(specs) - 1:
            for job in range(6):
                cluster.submit(f"past-{number}-{job}", concurrencyKey="a")
            await asyncio.sleep(STEP_SECONDS)
            if cluster.dice.happens(f"restart {number}", 0.5):
                cluster.restart_operator()
    await asyncio.sleep(STEP_SECONDS)
    cluster.delete_jobs()
    await asyncio.sleep(max(0.0, cluster.until(begins_at)))
    cluster.handlers.runs.clear()
    for job in range(6):
        cluster.submit(f"probe-{job}", concurrencyKey="ab"[job % 2])
    cluster.submit("probe-fails", payload=work(failures=1))
    cluster.submit("probe-unknown", "nobody-knows-it")
    await asyncio.sleep(_PROBE_SECONDS)
    queue = cluster.find(queue_path(NAMESPACE, "lived")) or {}
    status = queue.get("status", {})
    peak = _peak(cluster)
    return {
        "jobs": _phases(cluster),
        "kept": len(cluster.jobs()),
        "peak": peak,
        # Under a rate it depends on when the failing probe, which takes no time, has its turn.
        "peak without a rate": None if "rateLimit" in specs[-1] else peak,
        "counts": status.get("counts"),
        "reservations": len(status.get("reservations", ())),
        "conditions": {one["type"]: one["status"] for one in status.get("conditions", ())},
        "spec": queue.get("spec"),
    }


def _phases(cluster: QuietCluster) -> dict[str, str]:
    """Return the last phases and reasons of the probes: retention may have deleted them."""
    texts = (
        f"{status.get('phase')} {status.get('reason', '')}".strip()
        for name, status in cluster.last_status.items()
        if name.startswith("probe-")
    )
    # Which of several equal jobs comes first is nobody's promise.
    return {str(number): text for number, text in enumerate(sorted(texts))}


def _peak(cluster: QuietCluster) -> int:
    """Return how many handlers ran at the same time."""
    runs = [run for runs in cluster.handlers.runs.values() for run in runs]
    return max(
        (
            sum(1 for other in runs if other.began <= run.began < (other.ended or float("inf")))
            for run in runs
        ),
        default=0,
    )


def queue_promises(spec: Object, end: Object) -> list[tuple[str, object, object]]:
    """Return where the end is not as the fields say."""
    limit = min(spec.get("maxConcurrency", SLOTS), 2 * spec.get("maxConcurrencyPerKey", SLOTS) + 2)
    found: list[tuple[str, object, object]] = []
    if spec.get("paused") and end["peak"]:
        found.append(("jobs ran in a paused queue", end["peak"], 0))
    if end["peak"] > min(limit, SLOTS):
        found.append(("too many jobs ran at once", end["peak"], min(limit, SLOTS)))
    unlimited = not spec.get("paused") and "rateLimit" not in spec
    ended = Counter(text.split()[0] for text in end["jobs"].values())
    if unlimited and ended["Succeeded"] < 6:  # noqa: PLR2004  # of the probes that do not fail
        found.append(("not every probe has succeeded", dict(ended), 6))
    return found


# ---- control fields


async def _control_life(specs: Sequence[Object], begins_at: float, cluster: QuietCluster) -> Object:
    """Change a job's control fields while its queue is paused, then let it go."""
    pausing: Object = {"paused": True}
    cluster.put("AsyncQueue", queue_path(NAMESPACE, "lived"), QUEUES, "lived", pausing)
    await asyncio.sleep(STEP_SECONDS)
    made: Object = {}
    for number, spec in enumerate(specs):
        if not number:
            cluster.submit("lived", **spec)
            made = spec
        elif cluster.write("PATCH", job_path(NAMESPACE, "lived"), {"spec": spec}) is not None:
            made = {**made, **spec}
        await asyncio.sleep(STEP_SECONDS)
        if cluster.dice.happens(f"restart {number}", 0.5):
            cluster.restart_operator()
    await asyncio.sleep(max(0.0, cluster.until(begins_at)))
    cluster.put("AsyncQueue", queue_path(NAMESPACE, "lived"), QUEUES, "lived", {})
    await asyncio.sleep(_PROBE_SECONDS)
    job = cluster.find(job_path(NAMESPACE, "lived")) or {}
    status = job.get("status", {})
    kept = {name: job.get("spec", {}).get(name) for name in ("suspend", "cancel", "priority")}
    return {
        "phase": status.get("phase"),
        "reason": status.get("reason"),
        "attempt": status.get("attempt", 0),
        "admitted": status.get("admitted", False),
        "spec": {name: value for name, value in kept.items() if value},
        "others": sorted(cluster.jobs().keys() - {"lived"}),
        "taken": made,
    }


def control_promises(_: Object, end: Object) -> list[tuple[str, object, object]]:
    """Return where the job is not as its control fields say."""
    spec = end["spec"]
    expected = "Succeeded"
    if spec.get("cancel"):
        expected = "Cancelled"
    elif spec.get("suspend"):
        expected = "Pending"
    return [] if end["phase"] == expected else [("another phase", end["phase"], expected)]


# ---- all of them


@dataclass(frozen=True)
class LifeKind:
    """One kind of life."""

    name: str
    make: Callable[[Dice, int], Object]
    live: Callable[[Sequence[Object], float, QuietCluster], Awaitable[Object]]
    promises: Callable[[Object, Object], list[tuple[str, object, object]]]
    begins_at: float
    """When the comparison begins, in seconds of virtual time."""

    ignored: frozenset[str] = field(default_factory=frozenset)
    """What of the end may differ from that of a fresh one."""

    app: Callable[[HandlerCalls], WorkerApp] = make_app
    """Makes the app of the worker."""

    changes: int = CHANGES
    """How many specs it gets."""


def _queue_spec(dice: Dice, number: int) -> Object:
    spec: Object = made_value(spec_schema(QUEUES), dice, f"queue {number}", _QUEUE_VALUES)
    return spec


def _control_spec(dice: Dice, number: int) -> Object:
    names = ("suspend", "priority", "cancel")
    plain = {name: spec_schema(JOBS)["properties"][name] for name in names}
    spec: Object = made_value({"type": "object", "properties": plain}, dice, f"job {number}", {})
    # A cancel can not be taken back; most lives go on for longer.
    if not dice.happens(f"job {number} cancels", 0.3):
        spec.pop("cancel", None)
    return spec


KINDS: Final = (
    LifeKind("queue", _queue_spec, _queue_life, queue_promises, 260.0, frozenset({"peak"})),
    LifeKind(
        "schedule",
        schedule_spec,
        schedule_life,
        schedule_promises,
        SCHEDULE_BEGINS_AT,
        frozenset({"runs", "begin"}),
    ),
    LifeKind(
        "control fields",
        _control_spec,
        _control_life,
        control_promises,
        160.0,
        frozenset({"taken"}),
    ),
    LifeKind(
        "array",
        array_spec,
        array_life,
        array_promises,
        ARRAY_BEGINS_AT,
        # One without a past has nothing to redrive: what a redrive does is among the promises.
        frozenset({"taken", "suspended", "redrives", "asked", "run again"}),
        array_app,
        ARRAY_CHANGES,
    ),
)


def try_seed(kind: LifeKind, seed: int) -> list[LifeDifference]:
    """Let one resource live, and compare it with a fresh one."""
    dice = Dice(seed)
    specs = [kind.make(dice, number) for number in range(kind.changes)]
    lived = end_of(kind, specs, seed)
    # All that was taken at once: some changes are refused, such as to take a cancel back.
    last = lived.get("taken", specs[-1])
    fresh = end_of(kind, [last], seed)
    found = [
        LifeDifference(seed, kind.name, what, lived[what], fresh[what], specs)
        for what in fresh
        if what not in kind.ignored and lived[what] != fresh[what]
    ]
    found += [
        LifeDifference(seed, kind.name, what, came, expected, specs)
        for what, came, expected in kind.promises(last, lived)
    ]
    return found


def end_of(kind: LifeKind, specs: Sequence[Object], seed: int) -> Object:
    """Return what a resource comes to that is given these specs one after the other."""
    return play(seed, partial(kind.live, specs, kind.begins_at), kind.app)


@click.command()
@click.option("--seed", type=int, help="The first seed; a fresh one by default.")
@click.option("--minutes", type=float, default=1.0, show_default=True, help="Go on for so long.")
@click.option("--lives", type=int, help="Or until so many resources have lived.")
def main(*, seed: int | None, minutes: float, lives: int | None) -> None:
    """Let resources live through generated changes; exit 1 where one is not as a fresh one."""
    first = secrets.randbits(32) if seed is None else seed
    click.echo(f"first seed: {first}")
    prepare_process()
    end, done = time.monotonic() + 60 * minutes, 0
    counts: Counter[str] = Counter()
    while time.monotonic() < end and done < (lives or sys.maxsize):
        kind = KINDS[done % len(KINDS)]
        found = try_seed(kind, first + done)
        done += 1
        counts[kind.name] += 1
        if found:
            click.echo("\n".join(line for one in found for line in one.lines()))
            click.echo(f"again: make simulate-resources SEED={first} LIVES={done}")
            sys.exit(1)
    click.echo(f"{done} lives, each as a fresh resource: {dict(counts)}")


if __name__ == "__main__":
    main()
