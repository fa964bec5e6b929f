"""Jobs that depend on others, and a cancel that cascades, on a real API server."""

from pathlib import Path

import pytest
import yaml

from asyncjob.names import JOBS, PARENT_LABEL, collection_path
from asyncjob_dev.errors import ApiStatusError
from support.driven.fake_worker import FakeWorker
from support.driven.jobs import Jobs, until
from support.processes.operator import WATCHES_OF_LONG_FILES

pytestmark = [
    pytest.mark.integration,
    pytest.mark.parametrize("operator", WATCHES_OF_LONG_FILES, indirect=True),
]

CHAIN = Path(__file__).parents[3] / "examples" / "chain"


def child(jobs: Jobs, name: str, parent: str, **spec: object) -> None:
    uid = jobs.get(parent)["metadata"]["uid"]
    body = {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncJob",
        "metadata": {"name": name, "labels": {PARENT_LABEL: uid}},
        "spec": {"type": "test", **spec},
    }
    jobs.api.create(collection_path(jobs.namespace, JOBS), body)


def until_says(jobs: Jobs, name: str, words: str) -> None:
    until(lambda: words in jobs.status(name).get("message", ""), 10, f"{name}: {words}")


def do(jobs: Jobs, worker: FakeWorker, *names: str) -> None:
    for name in names:
        worker.claim(name)
        worker.succeed(name)


def test_the_example_is_applied_backwards_and_runs_forwards(jobs: Jobs, worker: FakeWorker) -> None:
    for name in ("count", "report", "digest"):
        body = yaml.safe_load((CHAIN / f"{name}.yaml").read_text())
        jobs.api.create(collection_path(jobs.namespace, JOBS), body)
    until_says(jobs, "count", "waiting for digest and report")
    with pytest.raises(ApiStatusError, match="cannot go from Pending to Running"):
        worker.claim("count")
    worker.claim("digest")
    child(jobs, "part", "digest")
    worker.succeed("digest")
    until_says(jobs, "count", "waiting for children of digest and report")
    jobs.until_phase("report", "Queued")
    do(jobs, worker, "report", "part")
    assert jobs.until_phase("count", "Queued")["admitted"] is True
    do(jobs, worker, "count")
    assert [entry["reason"] for entry in jobs.status("count")["history"][:2]] == [
        "WaitingForDependency",
        "GateOpened",
    ]


def test_what_can_never_start_is_a_dead_letter_that_says_why(
    jobs: Jobs, worker: FakeWorker
) -> None:
    jobs.create("bad", retryPolicy={"maxRetries": 0})
    jobs.create("next", dependsOn=[{"name": "bad"}])
    jobs.create("tidy", dependsOn=[{"name": "bad", "outcome": "Any"}])
    jobs.create("lost", dependsOn=[{"name": "nowhere"}])
    for name, other in ("ab", "bc", "ca"):
        jobs.create(name, dependsOn=[{"name": other}])
    until_says(jobs, "lost", "nowhere (does not exist)")
    worker.claim("bad")
    worker.fail("bad")
    says = {
        "next": "cannot start: bad is a dead letter (RetriesExhausted)",
        "a": "cannot start: jobs wait for one another: a → b → c → a",
        "b": "b → c → a → b",
        "c": "c → a → b → c",
        "lost": "nowhere does not exist; waited 5 s",
    }
    for name, words in says.items():
        status = jobs.until_phase(name, "DeadLetter", within=15)
        assert (status["reason"], status["attempt"]) == ("DependencyFailed", 0)
        assert words in status["message"]
    jobs.until_phase("tidy", "Queued")

    jobs.change_spec("bad", redrive=1)
    jobs.until_phase("bad", "Queued")
    jobs.change_spec("next", redrive=1)
    until_says(jobs, "next", "waiting for bad")
    do(jobs, worker, "bad")
    jobs.until_phase("next", "Queued")


def test_a_job_that_would_wait_for_itself_is_refused(jobs: Jobs) -> None:
    with pytest.raises(ApiStatusError, match="selfish cannot depend on itself; leave it out"):
        jobs.create("selfish", dependsOn=[{"name": "selfish"}])


def test_a_cancel_cascades_to_children_and_those_who_wait_if_it_is_to(
    jobs: Jobs, worker: FakeWorker
) -> None:
    jobs.create("root")
    jobs.create("next", dependsOn=[{"name": "root"}])
    jobs.create("after", dependsOn=[{"name": "next"}])
    jobs.create("tidy", dependsOn=[{"name": "root", "outcome": "Any"}])
    child(jobs, "part", "root")
    child(jobs, "running", "root", cancelGraceSeconds=1)
    worker.claim("running", lease=60)
    jobs.change_spec("root", cancel=True, cancelCascade=True)
    for name in ("root", "next", "after", "part", "running"):
        status = jobs.until_phase(name, "Cancelled", within=10)
        assert status["reason"] == "CancelRequested"
    assert jobs.status("part")["message"].endswith("with root")
    jobs.until_phase("tidy", "Queued")


def test_retention_leaves_alone_what_a_job_still_waits_for(jobs: Jobs, worker: FakeWorker) -> None:
    jobs.create("kept", ttlSecondsAfterFinished=0)
    jobs.create("gone", ttlSecondsAfterFinished=0)
    jobs.create("gate", suspend=True)
    jobs.create("last", dependsOn=[{"name": "kept"}, {"name": "gate"}])
    until_says(jobs, "last", "waiting for kept and gate")
    do(jobs, worker, "kept", "gone")
    until(lambda: not jobs.exists("gone"), 10)
    assert jobs.exists("kept")
    jobs.change_spec("gate", suspend=False)
    until(lambda: jobs.status("gate").get("phase") == "Queued", 5)
    do(jobs, worker, "gate")
    jobs.until_phase("last", "Queued")
    do(jobs, worker, "last")
    until(lambda: not jobs.exists("kept"), 10)
