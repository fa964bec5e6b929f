"""No gauge lies: compared with a LIST, after a restart and after a change of leaders."""

from collections import Counter
from typing import Any

import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.metrics import TABLE, MetricType
from support.driven.jobs import now, until
from support.processes.operator import OperatorProcess, Replicas
from support.processes.workers import WorkerNamespace

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.timeout(150)]

JOBS = "asyncjob_jobs"
OF_JOBS = (JOBS, "asyncjob_queue_oldest_seconds", "asyncjob_queue_workers", "asyncjob_queue_slots")


def there_are(ns: WorkerNamespace) -> dict[tuple[str, ...], float]:
    """Return jobs by namespace, queue and phase, as a LIST says."""
    counts: Counter[tuple[str, ...]] = Counter()
    for job in ns.jobs():
        counts[ns.namespace, job["spec"]["queue"], job["status"]["phase"]] += 1
    return dict(counts)


def shown(operator: OperatorProcess) -> dict[tuple[str, ...], float]:
    """Return what the gauge says, but for phases in which there is no job."""
    return {labels: count for labels, count in operator.samples(JOBS).items() if count}


def agree(operator: OperatorProcess, ns: WorkerNamespace) -> None:
    """Wait until the gauge says what a LIST does: a change may be on its way."""
    until(lambda: shown(operator) == there_are(ns), 5, f"{shown(operator)} {there_are(ns)}")


def settle_all(ns: WorkerNamespace) -> None:
    """Make jobs in all phases but for none."""
    ahead: dict[str, Any] = {"notBefore": now(3600)}
    ns.create("queued", "fine", queue="nobody")
    ns.create("scheduled", "fine", **ahead)
    ns.create("pending", "fine", suspend=True)
    ns.create("running", "held")
    ns.create("retrying", "later")
    ns.create("succeeded", "fine")
    ns.create("dead", "doomed")
    ns.create("cancelled", "fine", **ahead)
    for name in ("scheduled", "cancelled"):
        ns.until_phase(name, "Scheduled")
    ns.cancel("cancelled")
    ends = {"dead": "DeadLetter", "cancelled": "Cancelled"}
    for name in ("pending", "running", "retrying", "succeeded", *ends):
        ns.until_phase(name, ends.get(name, name.capitalize()))


def test_gauges_are_right_after_a_change_of_leaders_and_at_once_after_a_restart(
    replicas: Replicas, ns: WorkerNamespace
) -> None:
    leader = replicas.start().until_leading()
    standby = replicas.start()
    ns.worker("worker-0", "--concurrency=4", app="support.apps.monitored:app")
    settle_all(ns)
    assert {phase for _, _, phase in there_are(ns)} == set(Phase)
    agree(leader, ns)
    assert leader.samples("asyncjob_operator_known_jobs") == dict.fromkeys(zip(Phase), 1)
    assert not any(standby.samples(name) for name in OF_JOBS), "a standby would double them"
    counted = leader.metric("asyncjob_jobs_submitted_total")
    assert counted == 8
    assert standby.metric("asyncjob_jobs_submitted_total") == 0

    leader.stop()
    standby.until_leading()
    agree(standby, ns)
    ns.create("more", "fine", queue="nobody")
    agree(standby, ns)
    assert standby.metric("asyncjob_jobs_submitted_total") == 1
    age = standby.samples("asyncjob_queue_oldest_seconds")
    assert age[ns.namespace, "nobody"] > age[ns.namespace, "default"] == 0
    crews = standby.samples("asyncjob_queue_workers")
    assert crews == {(ns.namespace, "nobody"): 0, (ns.namespace, "default"): 1}

    standby.stop()
    ns.create("unseen", "fine", queue="nobody")
    ns.open("done")
    ns.until_phase("running", "Succeeded")
    ns.api.delete(f"{jobs_path(ns)}/succeeded")
    again = replicas.start()
    first = until(lambda: shown(again), 20, "the gauge of the one that leads")
    assert first == there_are(ns), "exact the first time it is shown"
    assert again.metric("asyncjob_jobs_submitted_total") == 0, "nothing was seen to happen"


def jobs_path(ns: WorkerNamespace) -> str:
    return f"/apis/asyncjob.dev/v1alpha1/namespaces/{ns.namespace}/asyncjobs"


COUNTERS = {spec.exposed_name for spec in TABLE if spec.kind is MetricType.COUNTER}


class Watching:
    """Looks at the counters of a process again and again; a sum that falls is a lie."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, str], float] = {}

    def look(self, *operators: OperatorProcess) -> None:
        for operator in operators:
            now = {name: at for name, at in operator.totals().items() if name in COUNTERS}
            fallen = {name for name in now if now[name] < self._seen.get((operator.pid, name), 0)}
            assert not fallen, f"ran backwards: {fallen}"
            self._seen |= {(operator.pid, name): at for name, at in now.items()}


def test_gauges_settle_right_and_counters_only_grow_while_jobs_move_and_leaders_change(
    replicas: Replicas, ns: WorkerNamespace
) -> None:
    first = replicas.start().until_leading()
    second = replicas.start()
    ns.worker("worker-0", "--concurrency=8", app="support.apps.monitored:app")
    watching = Watching()

    def submit(wave: str) -> None:
        for number in range(20):
            type_ = ("fine", "doomed", "later", "fine")[number % 4]
            ns.create(f"{wave}-{number}", type_, queue=("default", "nobody")[number % 5 == 0])
            watching.look(*running)

    running = [first, second]
    submit("led")
    running = [second]
    first.stop()
    submit("leaderless")
    second.until_leading()
    third = replicas.start()
    running = [second, third]
    submit("new")
    watching.look(*running)
    until(lambda: unfinished(ns) == 0, 30, "an end for all that a worker serves")
    agree(second, ns)
    assert both(second, third) == there_are(ns), "added up over replicas, too"
    assert second.metric("asyncjob_jobs_submitted_total") <= 60

    second.kill()
    submit_unseen(ns)
    fourth = replicas.start()
    first_shown = until(lambda: shown(fourth) or shown(third), 40, "the gauge of who leads")
    assert first_shown == there_are(ns), "exact the first time, by a standby or a new one"


def submit_unseen(ns: WorkerNamespace) -> None:
    """Have things happen that no operator sees."""
    for number in range(10):
        ns.create(f"unseen-{number}", "fine")
        ns.until_phase(f"unseen-{number}", "Succeeded")


def unfinished(ns: WorkerNamespace) -> int:
    """Return how many jobs are about to do something."""
    waits = {"Pending", "Queued", "Running"}
    served = [job for job in ns.jobs() if job["spec"]["queue"] == "default"]
    return sum(job["status"]["phase"] in waits for job in served)


def both(*operators: OperatorProcess) -> dict[tuple[str, ...], float]:
    """Return the gauge as a sum over replicas."""
    total: Counter[tuple[str, ...]] = Counter()
    for operator in operators:
        total.update({labels: int(count) for labels, count in shown(operator).items()})
    return dict(total)
