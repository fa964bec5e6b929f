"""What the API server refuses, to workers and to everyone; and what it silently leaves alone."""

import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.names import JOBS, collection_path
from support.cluster.identities import OPERATOR_ACCOUNT
from support.driven.lives import crashed, succeeded
from support.forbidden import OTHERS, WORKERS, Case, ForbiddenSetup
from support.forbidden.case import NUMBERS
from support.forbidden.sources import CONFIG_MAP, SECRET
from support.objects.builders import claim_of, job

pytestmark = pytest.mark.integration

WHO = {"owner.holder", "worker-lease.own", "worker-lease.election", "source.secrets"}
WHO |= {"array.writer", "source.configmaps", "owner.rerun", "worker-lease.no-other"}
WHO |= {"owner.transition", "owner.running", "settings.keeping", "settings.changed"}
WHO |= {"removal.owners", "removal.finalizers", "removal.run-metadata", "removal.reports"}
WHO |= {"signal.right", "signal.sender", "signal.alone"}
"""Rules about who may write: 403. The others are about what: 422."""


@pytest.mark.parametrize("case", WORKERS, ids=str)
def test_a_worker_is_refused(shared_setup: ForbiddenSetup, case: Case) -> None:
    refused(shared_setup, case)


@pytest.mark.parametrize("case", OTHERS, ids=str)
def test_operators_and_users_are_refused(shared_setup: ForbiddenSetup, case: Case) -> None:
    refused(shared_setup, case)


def refused(setup: ForbiddenSetup, case: Case) -> None:
    answer = case.attempt(setup)
    assert not answer.accepted
    assert f"({case.rule})" in answer.message
    assert answer.status == (403 if case.rule in WHO else 422)


def test_workers_break_more_than_thirty_rules_in_vain() -> None:
    assert len({case.rule for case in WORKERS}) > 30


def test_a_worker_cannot_delete_a_job(setup: ForbiddenSetup) -> None:
    life = setup.life(Phase.SUCCEEDED)
    assert setup.worker.client.delete(life.path).status == 403
    assert life.status()["phase"] == "Succeeded"


def test_a_worker_cannot_change_a_spec_or_labels(setup: ForbiddenSetup) -> None:
    life = setup.life(Phase.RUNNING)
    assert setup.worker.client.merge(life.path, {"spec": {"cancel": True}}).status == 403
    labelled = {"metadata": {"labels": {"a": "b"}}}
    assert setup.worker.client.merge(life.path, labelled).status == 403


def test_a_worker_cannot_create_a_job(setup: ForbiddenSetup) -> None:
    path = collection_path(setup.space.name, JOBS)
    assert setup.worker.client.create(path, job()).status == 403


def test_a_worker_that_may_submit_children_reads_no_secret_by_them(setup: ForbiddenSetup) -> None:
    name = f"asyncjob-worker-{next(NUMBERS)}"
    setup.space.account(name)
    setup.space.bind(name, "asyncjob-worker-children")
    worker, path = setup.space.as_account(name), collection_path(setup.space.name, JOBS)
    for source in (SECRET, CONFIG_MAP):
        answer = worker.create(path, job("theft", payloadFrom=source))
        assert answer.status == 403
        assert "may not get" in answer.message
    assert worker.create(path, job("child")).accepted
    assert worker.delete(f"{path}/child").status == 403


def test_a_worker_cannot_replace_a_status(setup: ForbiddenSetup) -> None:
    life = setup.life(Phase.RUNNING)
    assert setup.worker.client.replace(life.status_path, life.read()).status == 403


def test_spec_labels_and_owners_stay_as_they_are_through_the_status(setup: ForbiddenSetup) -> None:
    life = setup.life(Phase.RUNNING)
    before = life.read()
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": setup.worker.pod,
        "uid": setup.worker.pod_uid,
    }
    body = {
        "metadata": {
            "labels": {"a": "b"},
            "annotations": {"a": "b"},
            "finalizers": ["a.example/b"],
            "ownerReferences": [owner],
        },
        "spec": {"cancel": True, "type": "other", "payload": {"a": 1}},
        "status": {"progress": {"percent": 1}},
    }

    setup.worker.client.merge(life.status_path, body).object()

    after = life.read()
    assert after["spec"] == before["spec"]
    assert after["status"]["progress"] == {"percent": 1}
    changing = {"managedFields", "resourceVersion"}
    assert strip(after["metadata"], changing) == strip(before["metadata"], changing)


def strip(metadata: dict[str, object], names: set[str]) -> dict[str, object]:
    return {name: value for name, value in metadata.items() if name not in names}


def test_a_refusal_says_what_was_tried_what_is_legal_and_why(setup: ForbiddenSetup) -> None:
    life = setup.life(Phase.SUCCEEDED)
    final = setup.operator.merge(life.status_path, {"status": {"phase": "Running"}})
    assert "phase cannot go from Succeeded to Running: Succeeded is final" in final.message

    life = setup.life(Phase.RETRYING)
    early = setup.operator.merge(life.status_path, {"status": {"phase": "Running"}})
    assert "from Retrying only to Cancelled, Queued" in early.message

    life = setup.life(Phase.RUNNING)
    other = setup.other.client.merge(life.status_path, {"status": {"progress": {"percent": 1}}})
    assert f"the job is held by pod {setup.worker.pod} ({setup.worker.pod_uid})" in other.message
    assert f"comes from pod {setup.other.pod} ({setup.other.pod_uid})" in other.message


def test_a_refusal_of_an_actor_says_whose_step_it_is(setup: ForbiddenSetup) -> None:
    step = "from Running to Queued for LeaseExpired is not for the holder of the job"
    assert step in setup.life(Phase.RUNNING).move(crashed, setup.worker.client).message

    nobody = setup.life(Phase.RUNNING).move(succeeded, setup.space.admin)
    assert "from Running to Succeeded is not for " in nobody.message
    assert "which holds no job" in nobody.message

    pod = setup.space.worker(f"operator-{next(NUMBERS)}", OPERATOR_ACCOUNT)
    life = setup.life()
    claim = pod.client.merge(life.status_path, claim_of(life.read(), pod.pod, pod.pod_uid))
    assert "give workers an account without that verb" in claim.message

    life = setup.life(Phase.RUNNING)
    planted = life.move(crashed, setup.operator, checkpoint={"row": 9})
    assert (
        "others cannot change progress and checkpoint when they end the attempt" in planted.message
    )


def test_a_repeated_report_of_the_same_status_changes_nothing(setup: ForbiddenSetup) -> None:
    life = setup.life(Phase.RUNNING)
    before = life.read()
    answer = setup.worker.client.merge(life.status_path, {"status": before["status"]})
    assert answer.object()["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
