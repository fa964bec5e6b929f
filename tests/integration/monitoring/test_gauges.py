"""No gauge lies: compared with a LIST, after a restart and after a change of leaders."""

from collections import Counter
from typing import Any

import pytest

from asyncjob.lifecycle.phases import Phase
from support.jobs import now, until
from support.operator import OperatorProcess
from support.replicas import Replicas
from support.workers import Field

pytestmark = pytest.mark.integration

JOBS = "asyncjob_jobs"
OF_JOBS = (JOBS, "asyncjob_queue_oldest_seconds", "asyncjob_queue_workers", "asyncjob_queue_slots")


def there_are(field: Field) -> dict[tuple[str, ...], float]:
    """Return jobs by namespace, queue and phase, as a LIST says."""
    counts: Counter[tuple[str, ...]] = Counter()
    for job in field.jobs():
        counts[field.namespace, job["spec"]["queue"], job["status"]["phase"]] += 1
    return dict(counts)


def shown(operator: OperatorProcess) -> dict[tuple[str, ...], float]:
    """Return what the gauge says, but for phases in which there is no job."""
    return {labels: count for labels, count in operator.samples(JOBS).items() if count}


def agree(operator: OperatorProcess, field: Field) -> None:
    """Wait until the gauge says what a LIST does: a change may be on its way."""
    until(lambda: shown(operator) == there_are(field), 5, f"{shown(operator)} {there_are(field)}")


def settle_all(field: Field) -> None:
    """Make jobs in all phases but for none."""
    ahead: dict[str, Any] = {"notBefore": now(3600)}
    field.create("queued", "fine", queue="nobody")
    field.create("scheduled", "fine", **ahead)
    field.create("pending", "fine", suspend=True)
    field.create("running", "held")
    field.create("retrying", "later")
    field.create("succeeded", "fine")
    field.create("dead", "doomed")
    field.create("cancelled", "fine", **ahead)
    for name in ("scheduled", "cancelled"):
        field.until_phase(name, "Scheduled")
    field.cancel("cancelled")
    ends = {"dead": "DeadLetter", "cancelled": "Cancelled"}
    for name in ("pending", "running", "retrying", "succeeded", *ends):
        field.until_phase(name, ends.get(name, name.capitalize()))


def test_gauges_are_right_after_a_change_of_leaders_and_at_once_after_a_restart(
    replicas: Replicas, field: Field
) -> None:
    leader = replicas.start().until_leading()
    standby = replicas.start()
    field.worker("worker-0", "--concurrency=4", app="support.monitored_app:app")
    settle_all(field)
    assert {phase for _, _, phase in there_are(field)} == set(Phase)
    agree(leader, field)
    assert leader.samples("asyncjob_operator_known_jobs") == dict.fromkeys(zip(Phase), 1)
    assert not any(standby.samples(name) for name in OF_JOBS), "a standby would double them"
    counted = leader.metric("asyncjob_jobs_submitted_total")
    assert counted == 8
    assert standby.metric("asyncjob_jobs_submitted_total") == 0

    leader.stop()
    standby.until_leading()
    agree(standby, field)
    field.create("more", "fine", queue="nobody")
    agree(standby, field)
    assert standby.metric("asyncjob_jobs_submitted_total") == 1
    age = standby.samples("asyncjob_queue_oldest_seconds")
    assert age[field.namespace, "nobody"] > age[field.namespace, "default"] == 0
    crews = standby.samples("asyncjob_queue_workers")
    assert crews == {(field.namespace, "nobody"): 0, (field.namespace, "default"): 1}

    standby.stop()
    field.create("unseen", "fine", queue="nobody")
    field.open("done")
    field.until_phase("running", "Succeeded")
    field.api.delete(f"{jobs_path(field)}/succeeded")
    again = replicas.start()
    first = until(lambda: shown(again), 20, "the gauge of the one that leads")
    assert first == there_are(field), "exact the first time it is shown"
    assert again.metric("asyncjob_jobs_submitted_total") == 0, "nothing was seen to happen"


def jobs_path(field: Field) -> str:
    return f"/apis/asyncjob.dev/v1alpha1/namespaces/{field.namespace}/asyncjobs"
