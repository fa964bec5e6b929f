"""The bodies that the bare generator sends: those of the real worker, with marks."""

import json
from typing import Any

from asyncjob.models import AsyncJob
from asyncjob_bench.counting import job_states
from asyncjob_bench.harness import templates

JOB = templates.job("ns", templates.submission())


def body(step: templates.Step) -> Any:
    return json.loads(step.body)


def test_a_payload_has_about_the_size_that_was_asked_for() -> None:
    for size in (100, 1024, 102_400):
        assert abs(len(json.dumps(templates.payload(size))) - size) <= 1


def test_the_submitted_job_is_one() -> None:
    made = templates.job("ns", templates.submission(queue="mail"), "a")
    assert AsyncJob.model_validate(made).spec.queue == "mail"


def test_the_claim_names_version_claim_and_pod_by_marks() -> None:
    claim = body(templates.claim("ns"))
    status = claim["status"]
    assert claim["metadata"]["resourceVersion"] == templates.VERSION
    assert (status["claim"], status["attempt"]) == (templates.CLAIM, 1)
    assert status["lease"]["holder"] == templates.POD
    assert status["lease"]["holderUID"] == templates.POD_UID
    assert status["startTime"] == templates.NOW


def test_the_outcome_is_fenced_by_the_same_claim_and_drops_the_lease() -> None:
    steps = body(templates.complete("ns", JOB))
    assert {"op": "test", "path": "/status/claim", "value": templates.CLAIM} in steps
    assert {"op": "remove", "path": "/status/lease"} in steps
    assert {"op": "add", "path": "/status/phase", "value": "Succeeded"} in steps


def test_no_fixed_time_is_left_in_a_body() -> None:
    for step in (templates.claim("ns"), templates.complete("ns", JOB)):
        assert "2000-01-01" not in step.body


def test_workers_steps_carry_no_token_of_their_own() -> None:
    tokens = [
        templates.create("ns", "user", JOB).token,
        templates.claim("ns").token,
        templates.complete("ns", JOB).token,
    ]
    assert tokens == ["user", "", ""]


def test_filled_in_they_make_a_life_that_the_models_know() -> None:
    for state, phase in (
        (job_states.queued(7), "Queued"),
        (job_states.claimed(7), "Running"),
        (job_states.completed(7), "Succeeded"),
    ):
        assert AsyncJob.model_validate(state).status.phase == phase
        assert "@" not in json.dumps(state)
