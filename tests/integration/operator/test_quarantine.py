"""What one tenant may write does not keep the operator from acting for another."""

from pathlib import Path

import pytest

from asyncjob.names import job_path
from asyncjob_dev.controlplane import ControlPlane
from support.driven.fake_worker import FakeWorker
from support.driven.jobs import Jobs, now, until
from support.processes.operator import JOB_WATCHES, QUICK, OperatorProcess

pytestmark = [pytest.mark.integration, pytest.mark.timeout(150)]

LEVELS = 1100
FORGED = {
    "manager": "asyncjob-worker",
    "operation": "Update",
    "subresource": "status",
    "apiVersion": "asyncjob.dev/v1alpha1",
    "time": "0000-01-01T00:00:00Z",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:status": {}},
}


def create_deep(plane: ControlPlane, jobs: Jobs, folder: Path) -> None:
    payload = '{"a":' * LEVELS + "1" + "}" * LEVELS
    file = folder / "deep.json"
    file.write_text(
        '{"apiVersion": "asyncjob.dev/v1alpha1", "kind": "AsyncJob", "metadata": {"name": "deep"},'
        f'"spec": {{"type": "test", "suspend": true, "payload": {payload}}}}}'
    )
    plane.kubectl("create", f"--namespace={jobs.namespace}", f"--filename={file}")


def forge(jobs: Jobs, name: str) -> None:
    """Have the API server itself seem to have written a finished job in the year 0."""
    worker = FakeWorker(jobs)
    jobs.create(name)
    worker.claim(name)
    worker.succeed(name)
    body = {"metadata": {"managedFields": [FORGED]}}
    jobs.api.merge(job_path(jobs.namespace, name), body)
    times = [entry["time"] for entry in jobs.get(name)["metadata"]["managedFields"]]
    assert FORGED["time"] in times


@pytest.mark.parametrize("job_watch", JOB_WATCHES)
def test_a_deep_job_and_a_forged_time_blind_the_operator_for_nobody(
    fragile_plane: ControlPlane, operator_access: Path, tmp_path: Path, job_watch: str
) -> None:
    hostile, honest = Jobs(fragile_plane.api), Jobs(fragile_plane.api)
    names = [f"--namespace={jobs.namespace}" for jobs in (hostile, honest)]
    options = (*QUICK, *names, f"--lease-namespace={honest.namespace}", "--resync-interval=2")
    options += (f"--job-watch={job_watch}",)
    with OperatorProcess(operator_access, tmp_path / "log", *options) as operator:
        operator.until_ready(within=60).until_leading()
        create_deep(fragile_plane, hostile, tmp_path)
        forge(hostile, "forged")
        honest.create("while-it-runs", notBefore=now(3600))
        honest.until_phase("while-it-runs", "Scheduled", within=15)
        fragile_plane.kill_apiserver()
        fragile_plane.start_apiserver()
        honest.create("after-a-break", notBefore=now(3600))
        honest.until_phase("after-a-break", "Scheduled", within=30)
        hostile.create("beside-them", notBefore=now(3600))
        hostile.until_phase("beside-them", "Scheduled", within=30)
        assert operator.logs().count("object quarantined") <= 1
        assert "depth limit" not in operator.logs()
        assert operator.stop() == 0
    with OperatorProcess(operator_access, tmp_path / "second", *options) as operator:
        operator.until_ready(within=60).until_leading()
        honest.create("after-a-start", notBefore=now(3600))
        honest.until_phase("after-a-start", "Scheduled", within=15)
        until(lambda: operator.metric("asyncjob_operator_synced") == 1, 5)
