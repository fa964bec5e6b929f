"""Many large jobs with one key: a submission under it does not cost a gateway its memory."""

from pathlib import Path
from typing import Any

import pytest

from asyncjob.names import IDEMPOTENCY_LABEL, JOBS
from asyncjob.rest.submission import Submission
from asyncjob.submission import build_manifest
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Client
from support.cluster.identities import Space
from support.cluster.installation import install
from support.driven.crowd import store, stored
from support.objects.builders import job
from support.processes.gateway import GatewayProcess, gateway_kubeconfig, post
from support.programs.loop_watch import peak_mib

pytestmark = [pytest.mark.integration, pytest.mark.alone, pytest.mark.timeout(300)]

MANY = 150
ROWS = [{"id": n, "name": f"row {n}", "ok": True} for n in range(200 * 1024 // 41)]
ORDER = {"type": "any", "idempotencyKey": "mine", "deduplicationId": "one"}
MOST_MIB = 60.0
"""By which the gateway may grow: a few pages of jobs. All of them would take 300."""


def with_the_keys_label(namespace: str) -> dict[str, Any]:
    """Return a job that anyone who may create jobs can make."""
    order = build_manifest(Submission.model_validate(ORDER), namespace, new_id="id")
    body = job(payload=ROWS, idempotencyKey="another", suspend=True)
    body["metadata"]["labels"] = {IDEMPOTENCY_LABEL: order.labels[IDEMPOTENCY_LABEL]}
    return body


def with_the_id(_namespace: str) -> dict[str, Any]:
    return job(payload=ROWS, deduplicationId="one", suspend=True)


@pytest.mark.parametrize(
    ("body", "code"), [(with_the_keys_label, 202), (with_the_id, 409)], ids=["key", "id"]
)
def test_a_submission_beside_many_large_jobs_with_its_key_holds_a_few_of_them_at_a_time(
    body: Any, code: int, tmp_path: Path
) -> None:
    with ControlPlane() as plane:
        install(plane)
        space = Space("keys", Client(plane.url, plane.ca_file, plane.admin_token)).create()
        objects = [stored(space.name, body(space.name)) for _ in range(MANY)]
        for number, obj in enumerate(objects):
            obj["metadata"]["name"] = f"same-{number}"
            obj["status"] = {"phase": "Pending"}
        store(plane, JOBS, objects, at_once=4)
        log = tmp_path / "log"
        log.touch()
        access = gateway_kubeconfig(plane, space, tmp_path / "kubeconfig")
        with GatewayProcess(access, log, "--open") as gateway:
            gateway.until_ready(120)
            assert gateway.process
            before = peak_mib(gateway.process.pid)
            answer = post(f"{gateway.url}/api/v1/jobs", ORDER)
            assert answer.status_code == code, answer.text
            assert peak_mib(gateway.process.pid) < before + MOST_MIB
