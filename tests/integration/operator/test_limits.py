"""Queues with limits, by the API server's own history of versions."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from asyncjob.names import queue_path
from asyncjob_dev.api import Object
from asyncjob_dev.controlplane import ControlPlane
from support.driven.jobs import NUMBERS, until
from support.judging.history import History, Version
from support.processes.operator import QUICK, OperatorProcess
from support.processes.workers import WorkerNamespace, worker_namespace

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

LIMIT = 5
JOBS = 500


class LimitsSetup:
    """Workers and jobs in a namespace that only the test's own operators look after."""

    def __init__(self, ns: WorkerNamespace, access: Path, stack: ExitStack) -> None:
        self.ns = ns
        self._access = access
        self._stack = stack

    def operator(self, *options: str) -> OperatorProcess:
        log = self.ns.folder / f"operator-{next(NUMBERS)}.log"
        space = self.ns.namespace
        home = (f"--namespace={space}", f"--lease-namespace={space}")
        process = OperatorProcess(self._access, log, *QUICK, *home, *options)
        return self._stack.enter_context(process).until_ready()

    def history(self) -> History:
        return self._stack.enter_context(History(self.ns.plane, self.ns.namespace))

    def until_all(self, phase: str, within: float) -> None:
        def left() -> int:
            return sum(job["status"]["phase"] != phase for job in self.ns.jobs())

        until(lambda: not left(), within, f"{left()} jobs that are not {phase}", every=0.5)


@pytest.fixture
def setup(
    fragile_plane: ControlPlane, operator_access: Path, tmp_path: Path
) -> Iterator[LimitsSetup]:
    with ExitStack() as stack, worker_namespace(fragile_plane, tmp_path) as ns:
        yield LimitsSetup(ns, operator_access, stack)


def is_running(version: Version) -> bool:
    return version.phase == "Running"


@pytest.mark.soak
def test_never_more_run_than_the_queue_allows_though_jobs_fail_and_leaders_change(
    setup: LimitsSetup,
) -> None:
    ns, history = setup.ns, setup.history()
    ns.queue("default", maxConcurrency=LIMIT)
    leader = setup.operator().until_leading()
    standby = setup.operator()
    for number in range(4):
        ns.start_worker(f"worker-{number}", "--concurrency=8")
    for number in range(JOBS):
        ns.create(f"job-{number}", "shaky", 0.1, retryPolicy={"maxRetries": 100})

    def done() -> int:
        return sum(version.phase == "Succeeded" for version in history.versions)

    until(lambda: done() > JOBS / 5, 60, "the first fifth")
    assert leader.process
    leader.process.send_signal(signal.SIGSTOP)
    standby.until_leading()
    until(lambda: done() > JOBS / 2, 60, "the first half")
    leader.process.send_signal(signal.SIGCONT)
    until(lambda: done() > JOBS * 3 / 4, 60, "three quarters")
    standby.kill()
    setup.until_all("Succeeded", 60)
    assert history.most(is_running) == LIMIT
    assert history.most(lambda version: version.phase == "Running" or version.admitted) == LIMIT


@pytest.mark.soak
def test_a_rate_limit_holds_in_every_window_and_nobody_starves(setup: LimitsSetup) -> None:
    ns, history = setup.ns, setup.history()
    ns.queue("default", rateLimit={"count": 10})
    first = setup.operator().until_leading()
    second = setup.operator()
    ns.worker("worker-0", "--concurrency=8")
    for number in range(60):
        ns.create(f"job-{number}", "echo", number)
    until(lambda: len(history.admissions()) >= 20, 30, "the first twenty")
    first.kill()
    second.until_leading()
    setup.until_all("Succeeded", 60)
    times = sorted(version.updated for version in history.admissions())
    assert len(times) == 60
    for index, begin in enumerate(times):
        assert sum(time < begin + 1 for time in times[index:]) <= 10 + 1


@pytest.mark.soak
def test_a_key_with_a_thousand_jobs_holds_up_another_keys_first_by_one_job_at_most(
    setup: LimitsSetup,
) -> None:
    ns, history = setup.ns, setup.history()
    ns.queue("default", maxConcurrency=2, maxConcurrencyPerKey=2)
    for number in range(1000):
        ns.create(f"a-{number}", "linger", 0.3, concurrencyKey="a")
    setup.operator().until_leading()
    ns.worker("worker-0", "--concurrency=4")
    until(lambda: len(history.claims()) >= 6, 30, "a's first jobs")
    ns.create("b", "linger", 0.3, concurrencyKey="b")
    until(lambda: any(version.name == "b" for version in history.claims()), 30, "b's start")
    names = [version.name for version in history.versions]
    since = names.index("b")
    begun = [version.name for version in history.claims()]
    before = {version.name for version in history.versions[:since] if is_running(version)}
    ahead = set(begun[: begun.index("b")]) - before
    assert len(ahead) <= 2
    assert history.most(is_running) == 2


def test_who_waits_in_a_paused_queue_is_not_written_and_drained_shows_when_nothing_runs(
    setup: LimitsSetup,
) -> None:
    ns, history = setup.ns, setup.history()
    ns.queue("default", maxConcurrency=2, paused=True)
    for number in range(100):
        ns.create(f"job-{number}", "echo", number)
    setup.operator().until_leading()
    ns.worker("worker-0")
    path = queue_path(ns.namespace, "default")

    def queue() -> Object:
        status: Object = ns.api.get(path)["status"]
        return status

    drained = [{"type": "Drained", "status": "True"}]
    until(lambda: queue().get("conditions"), 20, "the numbers")
    found = [{name: item[name] for name in ("type", "status")} for item in queue()["conditions"]]
    assert found == drained
    assert queue()["counts"] == [{"phase": "Queued", "count": 100}]
    assert {version.kind for version in history.versions} == {"ADDED"}
    ns.api.merge(path, {"spec": {"paused": False}})
    setup.until_all("Succeeded", 60)
    assert history.most(is_running) <= 2
    until(lambda: not queue().get("reservations"), 10, "an empty book")
