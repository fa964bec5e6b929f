"""A job that simply succeeds is none of the operator's business."""

import pytest

from support.driven.fake_worker import FakeWorker
from support.driven.jobs import Jobs, until
from support.processes.operator import JOB_WATCHES, OperatorProcess

pytestmark = [
    pytest.mark.integration,
    pytest.mark.parametrize("operator", JOB_WATCHES, indirect=True),
]


def test_the_operator_writes_nothing_for_a_plain_job_that_succeeds(
    jobs: Jobs, worker: FakeWorker, operator: OperatorProcess
) -> None:
    def writes() -> float:
        return operator.metric("asyncjob_operator_writes_total")

    def seen() -> float:
        return operator.metric(
            "asyncjob_jobs", namespace=jobs.namespace, phase="Succeeded", queue="default"
        )

    before = writes()
    for number in range(5):
        jobs.create(f"plain-{number}")
        worker.claim(f"plain-{number}")
        worker.renew(f"plain-{number}")
        worker.succeed(f"plain-{number}")
    until(lambda: seen() == 5, 5)
    assert writes() == before
    managers = {entry["manager"] for entry in jobs.get("plain-0")["metadata"]["managedFields"]}
    assert "asyncjob-operator" not in managers
