"""What users ask for after the fact: cancel, dismiss, redrive, rerun."""

import pytest

from support.driven.fake_worker import FakeWorker
from support.driven.jobs import Jobs, now, until
from support.processes.operator import JOB_WATCHES

pytestmark = [
    pytest.mark.integration,
    pytest.mark.parametrize("operator", JOB_WATCHES, indirect=True),
]


def dead_letter(jobs: Jobs, worker: FakeWorker, name: str, **spec: object) -> None:
    jobs.create(name, retryPolicy={"maxRetries": 0}, **spec)
    if spec:
        until(lambda: jobs.status(name).get("admitted"), 5)
    worker.claim(name)
    worker.fail(name)
    assert jobs.status(name)["phase"] == "DeadLetter"


def test_a_running_job_is_cancelled_when_the_grace_period_is_over_and_not_before(
    jobs: Jobs, worker: FakeWorker
) -> None:
    jobs.create("stubborn", cancelGraceSeconds=2)
    worker.claim("stubborn", lease=60)
    asked = now()
    jobs.change_spec("stubborn", cancel=True)
    status = jobs.until_phase_after("stubborn", "Cancelled", 2, since=asked, within=5.5)
    assert status["reason"] == "CancelRequested"
    assert status["conditions"][0]["type"] == "Cancelled"


def test_cancelling_a_dead_letter_dismisses_it(jobs: Jobs, worker: FakeWorker) -> None:
    dead_letter(jobs, worker, "seen")
    jobs.change_spec("seen", cancel=True)
    assert jobs.until_phase("seen", "Cancelled", within=5)["reason"] == "Dismissed"


def test_a_redriven_dead_letter_starts_again_with_fresh_budgets(
    jobs: Jobs, worker: FakeWorker
) -> None:
    dead_letter(jobs, worker, "revived")
    jobs.change_spec("revived", redrive=3)
    status = jobs.until_phase("revived", "Queued", within=5)
    assert (status["reason"], status.get("redrives", 0), status.get("retries", 0)) == (
        "Redriven",
        3,
        0,
    )
    worker.claim("revived")
    assert worker.succeed("revived")["status"]["phase"] == "Succeeded"


def test_a_redrive_waits_while_another_live_job_has_the_deduplication_id(
    jobs: Jobs, worker: FakeWorker
) -> None:
    dead_letter(jobs, worker, "old", deduplicationId="shared")
    jobs.create("new", deduplicationId="shared")
    until(lambda: jobs.status("new").get("admitted"), 5)
    jobs.change_spec("old", redrive=1)
    events = until(lambda: [e for e in jobs.events("old") if e["reason"] == "RedriveRefused"], 5)
    assert "new" in events[0]["message"]
    jobs.stays("old", "DeadLetter", 1)
    worker.claim("new")
    worker.succeed("new")
    assert jobs.until_phase("old", "Queued", within=5)["reason"] == "Redriven"
    assert len([e for e in jobs.events("old") if e["reason"] == "RedriveRefused"]) == 1


def test_a_rerun_is_a_new_linked_job_and_the_request_is_acknowledged(
    jobs: Jobs, worker: FakeWorker
) -> None:
    jobs.create(
        "done",
        payload={"big": [1, {"deep": None}], "n": 2**53},
        priority=7,
        executionTimeoutSeconds=9,
        idempotencyKey="key",
        notAfter="2999-01-01T00:00:00Z",
        request={"headers": {"x-a": ["1", "2"]}},
        retryPolicy={"maxRetries": 1},
    )
    until(lambda: jobs.status("done").get("admitted"), 5)
    worker.claim("done")
    worker.succeed("done")
    jobs.change_spec("done", rerun=2)
    until(lambda: jobs.status("done").get("reruns", 0) == 2, 5)
    child, origin = jobs.get("done-r2"), jobs.get("done")
    taken = ("type", "payload", "priority", "executionTimeoutSeconds", "request", "retryPolicy")
    assert {key: child["spec"][key] for key in taken} == {key: origin["spec"][key] for key in taken}
    assert child["spec"]["rerunOf"] == {"name": "done", "uid": origin["metadata"]["uid"]}
    assert not {"idempotencyKey", "notAfter", "rerun"} & child["spec"].keys()
    assert not jobs.exists("done-r1")
    assert origin["status"]["phase"] == "Succeeded"


def test_a_rerun_whose_name_another_job_has_is_refused_with_an_event(
    jobs: Jobs, worker: FakeWorker
) -> None:
    jobs.create("origin")
    jobs.create("origin-r1")
    worker.claim("origin")
    worker.succeed("origin")
    jobs.change_spec("origin", rerun=1)
    assert until(lambda: jobs.events("origin"), 5)[0]["reason"] == "RerunRefused"
    assert jobs.status("origin").get("reruns", 0) == 1
