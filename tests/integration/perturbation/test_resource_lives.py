"""Generated lives on a real API server: A → B → C ends as C made fresh.

Queues, cron jobs, arrays and the control fields of jobs.

`make simulate-resources` does this in virtual time, with many more.
"""

import asyncio
import contextlib
import os
from collections.abc import Coroutine, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from asyncjob.errors import ApiError
from asyncjob.names import (
    ARRAYS,
    CRON_JOBS,
    JOBS,
    QUEUES,
    array_path,
    cron_job_path,
    job_path,
    queue_path,
)
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_perturbation.case import ScenarioRun
from asyncjob_perturbation.cluster import Cluster, running_cluster
from asyncjob_perturbation.handlers import UNTIL_MENDED
from asyncjob_perturbation.people import WithKubectl
from asyncjob_perturbation.plan import LEASE_SECONDS, Part
from asyncjob_perturbation.processes import prepare
from asyncjob_perturbation.scenarios import Scenario, ScenarioContext, job_spec
from asyncjob_simulation.array_lives import counted, heeded, is_stopped
from asyncjob_simulation.array_rules import ENDED
from asyncjob_simulation.dice import Dice
from asyncjob_simulation.resource_lives import CHANGES, KINDS

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

Object = dict[str, Any]
Result = TypeVar("Result")

FIRST_SEED: Final = int(os.environ.get("ASYNCJOB_SEED", "1790364820"))
"""The nightly search sets a fresh one."""

LIVES: Final = 3
STEP_SECONDS: Final = 1.5
SETTLE_SECONDS: Final = 15.0
ENDED_SECONDS: Final = 120.0
LATE_SECONDS: Final = 20.0
"""So long after its last change a cron job may run by what it was before: the operator restarts."""

SCHEDULED_FOR: Final = timedelta(minutes=3)
EACH_MINUTE: Final = "* * * * *"
_, SCHEDULE, CONTROL, ARRAY = KINDS
RETENTION: Final = "retention"
"""Left out: what was deleted is not there to be compared."""


async def together(*lives: Coroutine[Any, Any, Result]) -> list[Result]:
    """Return what comes of each; if one fails, the processes of the others are ended, too."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(life) for life in lives]
    return [task.result() for task in tasks]


@pytest.fixture
def control_plane() -> Iterator[ControlPlane]:
    prepare()
    with ControlPlane() as plane:
        yield plane


async def test_a_queue_ends_as_its_last_spec_says_whatever_it_was_before(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with running_cluster(control_plane, tmp_path) as cluster:
        ends = await together(
            *(lived_and_fresh(cluster, seed) for seed in range(FIRST_SEED, FIRST_SEED + LIVES))
        )
    for specs, lived, fresh in ends:
        assert lived == fresh, specs


@pytest.mark.soak
async def test_a_job_ends_as_its_control_fields_say_whatever_they_were_before(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with running_cluster(control_plane, tmp_path) as cluster:
        await together(
            *(check_control_fields(cluster, seed) for seed in range(FIRST_SEED, FIRST_SEED + LIVES))
        )


async def check_control_fields(cluster: Cluster, seed: int) -> None:
    specs = [CONTROL.make(Dice(seed), number) for number in range(CHANGES)]
    lived = await end_of_job(cluster, f"job-lived-{seed}", specs)
    # All at once, but for changes that were refused: a cancel is not taken back.
    fresh = await end_of_job(cluster, f"job-fresh-{seed}", [lived["spec"]])
    assert lived == fresh, specs
    assert not CONTROL.promises({}, lived), specs


async def end_of_job(cluster: Cluster, name: str, specs: Sequence[Object]) -> Object:
    """Return what becomes of a job that had these control fields while its queue was paused."""
    async with ScenarioRun(cluster, Scenario(name, _nothing, {}), Part.WORKER) as run:
        people = WithKubectl(cluster.session, run.namespace)
        await people.create(QUEUES, "default", {"paused": True})
        await run.play()
        await people.submit("lived", {**job_spec("echo", 1), **specs[0]})
        path = job_path(run.namespace, "lived")
        for number, spec in enumerate(specs[1:]):
            await asyncio.sleep(STEP_SECONDS)
            with contextlib.suppress(ApiError):
                await cluster.session.merge_patch(path, {"spec": spec})
            if number % 2:
                run.parts[Part.OPERATOR].kill()
        await people.pause("default", paused=False)
        await asyncio.sleep(SETTLE_SECONDS)
        job: Any = run.seen.objects[JOBS]["lived"]
    status, spec = job["status"], job["spec"]
    names = ("suspend", "cancel", "priority")
    return {
        "phase": status["phase"],
        "reason": status.get("reason"),
        "attempt": status.get("attempt", 0),
        "admitted": status.get("admitted", False),
        "spec": {one: spec[one] for one in names if spec.get(one)},
    }


@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_a_schedule_runs_as_its_last_spec_says_whatever_it_was_before(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with running_cluster(control_plane, tmp_path) as cluster:
        await together(
            *(check_schedule(cluster, seed) for seed in range(FIRST_SEED, FIRST_SEED + LIVES))
        )


async def check_schedule(cluster: Cluster, seed: int) -> None:
    specs = [schedule_spec(Dice(seed), number) for number in range(CHANGES)]
    # To the same moment for both, in the middle of a minute, when nothing is under way.
    until = (datetime.now(UTC) + SCHEDULED_FOR).replace(second=30)
    (lived, since), (fresh, _) = await together(
        end_of_schedule(cluster, f"cron-lived-{seed}", specs, until),
        end_of_schedule(cluster, f"cron-fresh-{seed}", specs[-1:], until),
    )
    earliest = f"lived-{since + timedelta(seconds=LATE_SECONDS):%Y%m%dt%H%Mz}"
    for end in (lived, fresh):
        end["runs"] = [name for name in end["runs"] if name > earliest]
    assert lived == fresh, specs
    if specs[-1]["schedule"] == EACH_MINUTE:
        assert bool(lived["runs"]) == (not specs[-1].get("suspend")), (lived, specs)


def schedule_spec(dice: Dice, number: int) -> Object:
    """Return a spec whose runs, if it has any, come each minute or each other one."""
    spec = SCHEDULE.make(dice, number)
    # A busy machine is late, and what is later than this is not made up for.
    for late in ("startingDeadlineSeconds", "jitterSeconds"):
        spec.pop(late, None)
    schedule = dice.choice(f"often {number}", (EACH_MINUTE, "*/2 * * * *", "0 0 29 2 *"))
    return {**spec, "schedule": schedule, "jobTemplate": {"spec": job_spec("echo", 1)}}


async def end_of_schedule(
    cluster: Cluster, name: str, specs: Sequence[Object], until: datetime
) -> tuple[Object, datetime]:
    """Return what a cron job with these specs has come to, and since when it has the last."""
    async with ScenarioRun(cluster, Scenario(name, _nothing, {}), Part.WORKER) as run:
        people = WithKubectl(cluster.session, run.namespace)
        path = cron_job_path(run.namespace, "lived")
        await people.create(QUEUES, "default", {})
        await people.create(CRON_JOBS, "lived", specs[0])
        await run.play()
        for number, spec in enumerate(specs[1:]):
            await asyncio.sleep(STEP_SECONDS)
            await people.replace_spec(path, spec)
            if number % 2:
                run.parts[Part.OPERATOR].kill()
        since = datetime.now(UTC)
        await asyncio.sleep((until - since).total_seconds())
        status = run.seen.objects[CRON_JOBS]["lived"].get("status", {})
        # Each that ever was: some are deleted as soon as they have ended.
        jobs = (one.obj for one in run.seen.versions if one.resource == JOBS)
        runs = sorted({job["metadata"]["name"] for job in jobs})
    conditions = {one["type"]: one["status"] for one in status.get("conditions", ())}
    end = {
        "runs": runs,
        "next": status.get("nextScheduleTime"),
        "active": status.get("activeCount", 0),
        "conditions": conditions,
    }
    return end, since


@pytest.mark.soak
async def test_an_array_ends_as_its_last_spec_says_whatever_it_was_before(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with running_cluster(control_plane, tmp_path) as cluster:
        await together(
            *(check_array(cluster, seed) for seed in range(FIRST_SEED, FIRST_SEED + LIVES))
        )


async def check_array(cluster: Cluster, seed: int) -> None:
    first, *changes = [ARRAY.make(Dice(seed), number) for number in range(ARRAY.changes)]
    lived, taken = await end_of_array(cluster, f"array-lived-{seed}", [array_spec(first), *changes])
    fresh, _ = await end_of_array(cluster, f"array-fresh-{seed}", [{**taken, "redrive": 0}])
    assert {**lived, "redrives": 0, "asked": 0} == fresh, (first, changes)
    assert not ARRAY.promises(taken, lived), (first, changes)


def array_spec(made: Object) -> Object:
    """Return a spec whose items fail as its payload says, and take a while one by one."""
    items, failing = made["items"], made["payload"]["failing"]
    count = items.get("count") or len(items["inline"])
    inline = [UNTIL_MENDED if item in failing else 0 for item in range(count)]
    kept = {name: value for name, value in made.items() if name != "notBefore"}
    return {
        **kept,
        "type": "sum",
        "queue": "default",
        "items": {"inline": inline, **({"skip": items["skip"]} if "skip" in items else {})},
        "chunkSize": 1,
        "leaseDurationSeconds": LEASE_SECONDS,
    }


async def end_of_array(
    cluster: Cluster, name: str, specs: Sequence[Object]
) -> tuple[Object, Object]:
    """Return what has become of an array that was changed while it ran, and what was taken."""
    async with ScenarioRun(cluster, Scenario(name, _nothing, {}), Part.WORKER) as run:
        people = WithKubectl(cluster.session, run.namespace)
        path = array_path(run.namespace, "lived")
        await people.create(QUEUES, "default", {})
        await people.create(ARRAYS, "lived", specs[0])
        await run.play()
        taken = specs[0]
        for number, spec in enumerate(specs[1:]):
            await asyncio.sleep(STEP_SECONDS)
            with contextlib.suppress(ApiError):
                answer: Any = await cluster.session.merge_patch(path, {"spec": spec})
                taken = {**taken, **heeded(spec, answer["status"])}
            if number % 2:
                run.parts[Part.OPERATOR].kill()
        # One that is suspended has no end to be compared.
        await cluster.session.merge_patch(path, {"spec": {"suspend": False}})
        async with asyncio.timeout(ENDED_SECONDS):
            while not (end := array_end(run.seen.objects, taken)):
                run.seen.changed.clear()
                await run.seen.changed.wait()
    return end, taken


def array_end(objects: Any, taken: Object) -> Object | None:
    """Return what an array has come to, None as long as anything of it is under way."""
    status, chunks = objects[ARRAYS]["lived"].get("status", {}), sorted(objects[JOBS])
    redrives, asked = status.get("redrives", 0), taken.get("redrive", 0)
    if status.get("phase") not in ENDED or chunks or redrives != asked:
        return None
    return {
        "phase": status["phase"],
        "reason": status.get("reason"),
        "items": None if is_stopped(status) else counted(status),
        "open": status.get("openCount"),
        "chunks": chunks,
        "redrives": redrives,
        "asked": asked,
        "conditions": [one["type"] for one in status.get("conditions", ())],
        # Nobody looks at these here.
        "goes on though suspended": False,
        "run again": True,
    }


async def lived_and_fresh(cluster: Cluster, seed: int) -> tuple[Sequence[Object], Object, Object]:
    """Return the specs of a life, what it has come to, and what its last has come to alone."""
    dice, make = Dice(seed), KINDS[0].make
    specs = [make(dice, number) for number in range(CHANGES)]
    for spec in specs:
        spec.pop(RETENTION, None)
        spec.pop("rateLimit", None)  # what has started before counts for its whole period
    lived, fresh = await together(
        end_of(cluster, f"lived-{seed}", specs), end_of(cluster, f"fresh-{seed}", specs[-1:])
    )
    return specs, lived, fresh


async def end_of(cluster: Cluster, name: str, specs: Sequence[Object]) -> Object:
    """Return what becomes of jobs in a queue that has had these specs."""
    async with ScenarioRun(cluster, Scenario(name, _nothing, {}), Part.WORKER) as run:
        people = WithKubectl(cluster.session, run.namespace)
        await people.create(QUEUES, "default", specs[0])
        await run.play()
        for number, spec in enumerate(specs[1:]):
            for job in range(3):
                await people.submit(f"past-{number}-{job}", job_spec("echo", job))
            await asyncio.sleep(STEP_SECONDS)
            await people.replace_spec(queue_path(run.namespace, "default"), spec)
            if number % 2:
                run.parts[Part.OPERATOR].kill()
        for job in range(6):
            key = {"concurrencyKey": "ab"[job % 2]}
            await people.submit(f"probe-{job}", job_spec("echo", job, **key))
        await asyncio.sleep(SETTLE_SECONDS)
        jobs = run.seen.objects[JOBS].items()
        status = run.seen.objects[QUEUES]["default"].get("status", {})
    conditions = {one["type"]: one["status"] for one in status.get("conditions", ())}
    return {
        "probes": sorted(_end(job) for name, job in jobs if name.startswith("probe")),
        "reservations": len(status.get("reservations", ())),
        "conditions": conditions,
    }


def _end(job: Object) -> str:
    status = job["status"]
    return f"{status['phase']} {status.get('reason', '')}".strip()


async def _nothing(_: ScenarioContext) -> None:
    """Do nothing: the test does it."""
