"""Cron jobs under several operators, whose clocks are wrong, stand still, or that are killed."""

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from asyncjob.lifecycle.timestamps import parse_timestamp
from asyncjob.names import SCHEDULED_TIME_ANNOTATION
from asyncjob_dev.controlplane import ControlPlane
from support.driven.crons import Crons, SkewedOperator, hourly, minutes_ago, times_of
from support.driven.fake_worker import FakeWorker
from support.driven.jobs import NUMBERS, Jobs, until
from support.processes.operator import QUICK

pytestmark = [pytest.mark.integration, pytest.mark.soak]

DAY = 86_400.0
Spec = dict[str, Any]
EVERY_MINUTE = "* * * * *"


@pytest.fixture
def crons(fragile_plane: ControlPlane) -> Crons:
    """Cron jobs that no operator looks after until the test starts one."""
    return Crons(Jobs(fragile_plane.api))


class Replicas:
    """Starts operators with clocks of their own and stops them all in the end."""

    def __init__(self, access: Path, crons: Crons, folder: Path, stack: ExitStack) -> None:
        self._access, self._crons, self._folder, self._stack = access, crons, folder, stack

    def start(self, *options: str, skew: float = 0.0) -> SkewedOperator:
        log = self._folder / f"operator-{next(NUMBERS)}.log"
        namespace = self._crons.jobs.namespace
        home = (f"--namespace={namespace}", f"--lease-namespace={namespace}")
        process = SkewedOperator(self._access, log, *QUICK, *home, *options, skew=skew)
        self._stack.enter_context(process)
        return process


@pytest.fixture
def replicas(operator_access: Path, crons: Crons, tmp_path: Path) -> Iterator[Replicas]:
    with ExitStack() as stack:
        yield Replicas(operator_access, crons, tmp_path, stack)


def missed(minutes: int) -> dict[str, Any]:
    """Return the status of a cron job that nobody has looked after for so many minutes."""
    return {"settledTime": minutes_ago(minutes)}


def test_after_a_day_of_downtime_each_policy_does_what_it_says(
    replicas: Replicas, crons: Crons
) -> None:
    day = missed(24 * 60)
    every_hour: Spec = {"schedule": hourly(), "startingDeadlineSeconds": 0}
    crons.create("skip", status=day, **every_hour, misfirePolicy="Skip")
    crons.create("once", status=day, **every_hour, misfirePolicy="FireOnce")
    crons.create("all", status=day, **every_hour, misfirePolicy="FireAll", misfireLimit=5)
    crons.create("often", status=day, schedule=EVERY_MINUTE)
    turn: Spec = {"concurrencyPolicy": "Forbid", "misfirePolicy": "FireAll", "misfireLimit": 2}
    crons.create("turn", status=day, **every_hour, **turn)
    crons.create("paused", status=day, schedule=EVERY_MINUTE, suspend=True)
    crons.create("changed", status=day, schedule=EVERY_MINUTE)
    crons.change("changed", schedule="0 0 29 2 *")
    crons.create("guarded", schedule=hourly(), status={"lastScheduleTime": minutes_ago(24 * 60)})
    replicas.start().until_ready().until_leading()
    worker = FakeWorker(crons.jobs)

    skipped = crons.until_status("skip", reason="Skipped", missed=24)
    assert crons.names("skip") == []
    [event] = until(lambda: crons.jobs.events("skip"), 5)
    assert (event["reason"], event["involvedObject"]["kind"]) == ("Skipped", "AsyncCronJob")
    assert crons.until_status("once", reserved=None, missed=23)["reason"] == "Misfired"
    assert times_of(crons.runs("once")) == [skipped["settledTime"]]
    assert times_of(crons.until_runs("guarded", 1)) == [skipped["settledTime"]]
    assert len(crons.until_runs("all", 5)) == 5
    status = crons.until_status("all", reserved=None, missed=19)
    assert status["lastScheduleTime"] == skipped["settledTime"]
    assert times_of(crons.runs("all"))[-1] == skipped["settledTime"]
    until(lambda: crons.status("often").get("missed", 0) >= 1438, 10)
    assert 1 <= len(crons.runs("often")) <= 3

    [first] = crons.until_runs("turn", 1)
    assert len(crons.until_quiet("turn")["reserved"]["runs"]) == 1
    worker.claim(first["metadata"]["name"])
    worker.succeed(first["metadata"]["name"])
    [_, second] = crons.until_runs("turn", 2)
    assert times_of([first]) < times_of([second]) == [skipped["settledTime"]]
    crons.until_status("turn", reserved=None)

    crons.until_status("paused", reason="Suspended", nextScheduleTime=None)
    crons.change("paused", suspend=False, schedule="0 0 29 2 *")
    crons.until_status("paused", reason="Scheduled")
    for name in ("paused", "changed"):
        assert crons.names(name) == []
        assert not crons.until_quiet(name).get("missed")


def test_three_operators_with_leader_changes_and_clocks_that_jump_run_each_time_once(
    replicas: Replicas, crons: Crons
) -> None:
    operators = [replicas.start() for _ in range(3)]
    for operator in operators:
        operator.until_ready()
    policy: Spec = {
        "misfirePolicy": "FireAll",
        "misfireLimit": 200,
        "successfulJobsHistoryLimit": 1000,
    }
    crons.create("hourly", schedule=hourly(), **policy)
    crons.create("alone", schedule=hourly(), concurrencyPolicy="Forbid", **policy)
    crons.until_status("hourly", reason="Scheduled")
    crons.until_status("alone", reason="Scheduled")

    def jump(operator: SkewedOperator, seconds: float) -> None:
        """Set its clock; a change of the schedule has it look at it sooner than in a minute."""
        operator.set_clock(seconds)
        for name in ("hourly", "alone"):
            crons.change(name, misfireLimit=crons.get(name)["spec"]["misfireLimit"] + 1)

    def next_leader(*but: SkewedOperator) -> SkewedOperator:
        rest = [one for one in operators if one not in but]
        return until(lambda: next((one for one in rest if one.leads()), None), 20)

    leader = next_leader()
    jump(leader, DAY)
    crons.until_runs("hourly", 24)
    crons.until_runs("alone", 1)
    jump(leader, 0)
    assert leader.process
    leader.process.send_signal(signal.SIGSTOP)
    second = next_leader(leader)
    jump(second, DAY)
    crons.change("hourly", trigger=1)
    crons.until_runs("hourly", 25)
    leader.process.send_signal(signal.SIGCONT)
    jump(second, -DAY)
    second.kill()
    jump(next_leader(second), 2 * DAY)
    runs = crons.until_runs("hourly", 49)
    crons.until_status("hourly", reserved=None)

    scheduled = [run for run in runs if run["metadata"]["name"] != "hourly-t1"]
    times = Counter(run["metadata"]["annotations"][SCHEDULED_TIME_ANNOTATION] for run in scheduled)
    assert set(times.values()) == {1}
    hours = [parse_timestamp(time).timestamp() / 3600 for time in sorted(times)]
    assert hours == [hours[0] + number for number in range(48)]
    assert sum(one["status"]["phase"] == "Queued" for one in crons.runs("alone")) == 1


def test_two_operators_that_both_believe_to_lead_run_nothing_twice_and_keep_forbid(
    replicas: Replicas, crons: Crons
) -> None:
    limits: Spec = {"successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0}
    for number in range(8):
        crons.create(
            f"cron-{number}",
            status=missed(300),
            schedule=hourly(),
            misfirePolicy="FireAll",
            concurrencyPolicy="Forbid" if number % 2 else "Allow",
            startingDeadlineSeconds=0,
            **limits,
        )
    both = [replicas.start("--no-leader-elect") for _ in range(2)]
    for operator in both:
        operator.until_ready()
    worker = FakeWorker(crons.jobs)
    alive: dict[str, str] = {}

    def drain() -> bool:
        unfinished: Counter[str] = Counter()
        for number in range(8):
            for run in crons.runs(f"cron-{number}"):
                name, uid = run["metadata"]["name"], run["metadata"]["uid"]
                if alive.setdefault(uid, name) == name and run["status"]["phase"] == "Queued":
                    unfinished[f"cron-{number}"] += 1
                    worker.claim(name)
                    worker.succeed(name)
        assert all(unfinished[f"cron-{number}"] <= 1 for number in range(1, 8, 2))
        return len(alive) >= 40 and all(
            "reserved" not in crons.status(f"cron-{number}") for number in range(8)
        )

    until(drain, 45, "all runs")
    assert [name for name, count in Counter(alive.values()).items() if count > 1] == []
    assert len(alive) == 40
