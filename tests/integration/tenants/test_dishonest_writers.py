"""Whatever a token may write anywhere, a tenant beside it is served as if nothing had been written.

Each field of each resource that somebody may write, with each value that nobody means: refused in
words, or taken and harmless to others.
"""

from collections.abc import Mapping
from typing import Any

import pytest

from asyncjob.lifecycle.job_view import read_job
from asyncjob.lifecycle.phase_change import status_fields
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import (
    COMPONENT_LABEL,
    CRON_JOBS,
    JOBS,
    POD_UID_ANNOTATION,
    QUEUE_LABEL,
    QUEUES,
    WORKER_ANNOTATION,
    WORKER_COMPONENT,
    WORKER_LEASE_PREFIX,
    collection_path,
    job_status_path,
)
from support.cluster.identities import Space, Worker
from support.driven.lives import Life, succeeded
from support.forbidden.removals import ADMINISTRATOR_WHO_DELETES
from support.objects.builders import claim_of
from support.tenants.accounts import (
    MANIFESTS,
    METADATA,
    Account,
    account,
    create_all,
    patch_all,
)
from support.tenants.dishonest import (
    ResourceField,
    Steps,
    Value,
    metadata_fields,
    schema_fields,
    tried,
    values,
)

pytestmark = [pytest.mark.integration, pytest.mark.alone, pytest.mark.timeout(420)]

STATUS = schema_fields(JOBS, "status")
LEASE_FIELDS = [
    *(ResourceField(("metadata", "labels", label)) for label in (QUEUE_LABEL, COMPONENT_LABEL)),
    *(
        ResourceField(("metadata", "annotations", one))
        for one in (WORKER_ANNOTATION, POD_UID_ANNOTATION)
    ),
    *metadata_fields((), ()),
    *(
        ResourceField(("spec", name))
        for name in (
            "acquireTime",
            "holderIdentity",
            "leaseDurationSeconds",
            "leaseTransitions",
            "renewTime",
        )
    ),
]
ANNOUNCED: tuple[Steps, ...] = (
    ("queue",),
    ("slots",),
    ("types",),
    ("types", 0),
    ("crashed",),
)
"""Inside the annotation by which a worker announces itself, which is JSON of its own."""


@pytest.mark.usefixtures("undisturbed")
def test_a_submitter_harms_nobody_by_what_it_creates(space: Space, foreign: str) -> None:
    thief = account(space, "asyncjob-job-submitter")
    create_all(thief, space, JOBS, foreign)
    assert not thief.odd
    assert thief.answers[201] > 50, thief.answers


@pytest.mark.parametrize(
    "roles", [ADMINISTRATOR_WHO_DELETES, ("asyncjob-gateway",)], ids=["administrator", "gateway"]
)
@pytest.mark.usefixtures("undisturbed")
def test_neither_an_administrator_of_jobs_nor_the_gateway_harms_other_tenants(
    space: Space, foreign: str, roles: tuple[str, ...]
) -> None:
    thief, worker = account(space, *roles), space.worker("worker-0")
    for plural in (QUEUES, CRON_JOBS):
        create_all(thief, space, plural, foreign)
        space.admin.create(
            collection_path(space.name, plural), MANIFESTS[plural]("victim")
        ).object()
        path = f"{collection_path(space.name, plural)}/victim"
        patch_all(thief, path, [*schema_fields(plural, "spec"), *METADATA], foreign)
    for phase in (Phase.QUEUED, Phase.RUNNING, Phase.SUCCEEDED, Phase.DEAD_LETTER):
        life = Life(space.name, f"victim-{phase.value.lower()}", space.admin, worker)
        life.create()
        life.bring(phase)
        patch_all(thief, life.path, [*schema_fields(JOBS, "spec"), *METADATA], foreign)
    assert not thief.odd
    assert thief.answers[200] > 50, thief.answers


@pytest.mark.usefixtures("undisturbed")
def test_a_worker_harms_nobody_by_what_it_reports(space: Space, foreign: str) -> None:
    worker = space.worker("worker-0")
    thief = Account(worker.client)
    for moment in (claiming, holding, ending):
        for number, (field, value) in enumerate(tried(STATUS, foreign)):
            path, text = moment(space, worker, f"{moment.__name__}-{number}", field, value)
            thief.write("PATCH", path, text, f"{moment.__name__} {field}", value)
    assert not thief.odd
    assert thief.answers[200] > 50, thief.answers


@pytest.mark.usefixtures("undisturbed")
def test_a_worker_harms_nobody_by_what_it_announces(space: Space, foreign: str) -> None:
    worker = space.worker("worker-0")
    thief = Account(worker.client)
    path = f"/apis/coordination.k8s.io/v1/namespaces/{space.name}/leases"
    name = f"{WORKER_LEASE_PREFIX}{worker.pod}"
    announced = {"queue": "default", "slots": 1, "types": ["test"]}
    body = {
        "metadata": {
            "name": name,
            "labels": {COMPONENT_LABEL: WORKER_COMPONENT, QUEUE_LABEL: "default"},
            "annotations": {POD_UID_ANNOTATION: worker.pod_uid},
        },
        "spec": {"holderIdentity": f"{worker.pod}/1", "leaseDurationSeconds": 15},
    }
    for field, value in tried(LEASE_FIELDS, foreign):
        worker.client.create(path, body)  # whoever names a foreign owner has it collected
        thief.write("PATCH", f"{path}/{name}", field.put({}, value), f"{field}", value)
    for steps in ANNOUNCED:
        for value in values(foreign):
            inner = ResourceField(("root", *steps)).put({"root": announced}, value)
            text = inner.removeprefix('{"root": ').removesuffix("}")
            patch = annotate(text)
            worker.client.create(path, body)
            thief.write("PATCH", f"{path}/{name}", patch, f"announced {steps}", value)
    assert not thief.odd
    assert thief.answers[200] > 20, thief.answers


def annotate(text: str) -> str:
    """Return the patch that announces this text."""
    value = Value("", ResourceField(("text",)).put({}, Value("", quoted(text))))
    return ResourceField(("metadata", "annotations", WORKER_ANNOTATION)).put(
        {}, Value("", value.text.removeprefix('{"text": ').removesuffix("}"))
    )


def quoted(text: str) -> str:
    """Return the text as a JSON string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def claiming(
    space: Space, worker: Worker, name: str, field: ResourceField, value: Value
) -> tuple[str, str]:
    """Return a claim with the value in it."""
    made = Life(space.name, name, space.admin, worker).create()
    body: Mapping[str, Any] = claim_of(made, worker.pod, worker.pod_uid)
    return job_status_path(space.name, name), field.put(body, value)


def holding(
    space: Space, worker: Worker, name: str, field: ResourceField, value: Value
) -> tuple[str, str]:
    """Return a report about a running job with the value in it."""
    life = Life(space.name, name, space.admin, worker)
    life.create()
    status = life.claim()["status"]
    kept = {"claim": status["claim"], "lease": {**status["lease"], "renewals": 1}}
    return life.status_path, field.put({"status": kept}, value)


def ending(
    space: Space, worker: Worker, name: str, field: ResourceField, value: Value
) -> tuple[str, str]:
    """Return an end of a running job with the value in it."""
    life = Life(space.name, name, space.admin, worker)
    life.create()
    obj = life.claim()
    fields = status_fields(succeeded(read_job(obj)), obj["status"])
    return life.status_path, field.put({"status": fields}, value)
