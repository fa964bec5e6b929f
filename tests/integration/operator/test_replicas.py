"""Several operators at once: one acts, another takes over, and even two at a time do no harm."""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from asyncjob_dev.controlplane import ControlPlane
from support.driven.fake_worker import FakeWorker
from support.driven.jobs import NUMBERS, Jobs, until
from support.processes.operator import QUICK, OperatorProcess

pytestmark = pytest.mark.integration

LEASE = 10
FAILOVER = 15.0


class Replicas:
    """Starts operators and stops them all in the end."""

    def __init__(self, kubeconfig: Path, jobs: Jobs, folder: Path, stack: ExitStack) -> None:
        self._kubeconfig = kubeconfig
        self._jobs = jobs
        self._folder = folder
        self._stack = stack

    def start(self, *options: str) -> OperatorProcess:
        log = self._folder / f"operator-{next(NUMBERS)}.log"
        home = (f"--namespace={self._jobs.namespace}", f"--lease-namespace={self._jobs.namespace}")
        process = OperatorProcess(self._kubeconfig, log, *QUICK, *home, *options)
        return self._stack.enter_context(process).until_ready()


@pytest.fixture
def alone(fragile_plane: ControlPlane) -> Jobs:
    """Jobs that no operator looks after until the test starts one."""
    return Jobs(fragile_plane.api)


@pytest.fixture
def replicas(operator_access: Path, alone: Jobs, tmp_path: Path) -> Iterator[Replicas]:
    with ExitStack() as stack:
        yield Replicas(operator_access, alone, tmp_path, stack)


def test_a_standby_takes_over_from_a_killed_leader_and_need_not_wait_leases_again(
    replicas: Replicas, alone: Jobs
) -> None:
    leader = replicas.start().until_leading()
    standby = replicas.start()
    worker = FakeWorker(alone)
    alone.create("orphan")
    worker.claim("orphan", lease=LEASE)
    until(lambda: standby.metric("asyncjob_operator_known_jobs", phase="Running") == 1, 5)
    leader.kill()
    killed_at = time.monotonic()
    standby.until_leading(within=FAILOVER)
    assert time.monotonic() - killed_at < FAILOVER
    assert alone.until_phase("orphan", "Queued", within=5)["reason"] == "LeaseExpired"


def test_a_leader_told_to_stop_exits_at_once_and_hands_over_at_once(replicas: Replicas) -> None:
    leader = replicas.start().until_leading()
    standby = replicas.start()
    assert not standby.leads()
    told_at = time.monotonic()
    assert leader.stop() == 0
    assert time.monotonic() - told_at < 5
    standby.until_leading(within=4)


def test_a_standby_writes_nothing(replicas: Replicas, alone: Jobs) -> None:
    leader = replicas.start().until_leading()
    standby = replicas.start()
    for number in range(5):
        alone.create(f"unwanted-{number}", cancel=True)
        alone.until_phase(f"unwanted-{number}", "Cancelled")
    # A write is counted once its answer has come, which may be after all can see it.
    until(lambda: leader.metric("asyncjob_operator_writes_total", outcome="done") == 5, 5)
    assert standby.metric("asyncjob_operator_writes_total") == 0


def test_a_leader_that_was_frozen_past_its_lease_does_not_lead_when_it_wakes(
    replicas: Replicas, alone: Jobs
) -> None:
    leader = replicas.start().until_leading()
    standby = replicas.start()
    assert leader.process
    leader.process.send_signal(signal.SIGSTOP)
    standby.until_leading(within=FAILOVER)
    leader.process.send_signal(signal.SIGCONT)
    until(lambda: "leading" in leader.logs() and leader.metric("asyncjob_operator_synced"), 5)
    for _ in range(20):
        assert not (leader.leads() and standby.leads())
        time.sleep(0.1)
    assert standby.leads()


def test_two_operators_that_both_believe_to_lead_take_no_step_twice(
    replicas: Replicas, alone: Jobs
) -> None:
    both = [replicas.start("--no-leader-elect") for _ in range(2)]
    worker = FakeWorker(alone)
    names = [f"job-{number}" for number in range(25)]
    for name in names:
        alone.create(name)
        worker.claim(name, lease=60)
        alone.change_spec(name, rerun=1)
    worker.end_container(137)
    for name in names:
        alone.until_reason(name, "WorkerCrashed", within=20)
    until(lambda: all(alone.exists(f"{name}-r1") for name in names), 20)
    for name in names:
        status = alone.status(name)
        steps = [(entry["phase"], entry["attempt"]) for entry in status["history"]]
        assert steps == [("Queued", 1)]
        assert (status.get("crashes", 0), status.get("releases", 0), status.get("reruns", 0)) == (
            1,
            0,
            1,
        )
        assert alone.exists(f"{name}-r1")
        assert not alone.exists(f"{name}-r1-r1")
    done = [one.metric("asyncjob_operator_writes_total", outcome="done") for one in both]
    assert sum(done) == 2 * len(names)


def test_disabled_recovery_leaves_jobs_of_dead_workers_alone_but_does_the_rest(
    replicas: Replicas, alone: Jobs
) -> None:
    operator = replicas.start("--no-recovery").until_leading()
    worker = FakeWorker(alone)
    alone.create("left")
    worker.claim("left", lease=5)
    worker.end_container(137)
    alone.create("unwanted", cancel=True)
    alone.until_phase("unwanted", "Cancelled")
    alone.stays("left", "Running", 6.5)
    assert "recovery disabled" in operator.logs()


def test_jobs_orphaned_while_no_operator_ran_are_recovered_when_one_starts(
    replicas: Replicas, alone: Jobs
) -> None:
    worker = FakeWorker(alone)
    alone.create("orphan")
    alone.create("waiting", retryPolicy={"initialDelaySeconds": 1, "jitter": 0})
    worker.claim("orphan", lease=5)
    worker.claim("waiting", lease=5)
    worker.fail("waiting")
    time.sleep(1)
    replicas.start()
    assert alone.until_phase("waiting", "Queued", within=3)["reason"] == "BackoffElapsed"
    assert alone.until_phase("orphan", "Queued", within=8)["reason"] == "LeaseExpired"
