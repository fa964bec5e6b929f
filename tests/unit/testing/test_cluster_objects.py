"""Objects in the fake cluster: what may be applied, what it shows, what it refuses."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from asyncjob import JobContext, WorkerApp
from asyncjob.errors import AlreadyExistsError, InvalidError, ObjectNotFoundError
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.testing import FakeCluster, NotFakedError
from support.objects import builders

app = WorkerApp()


@app.handler("echo")
async def echo(job: JobContext, payload: Any) -> Any:
    return payload


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster(app, patience=0.05) as running:
        yield running


async def test_yaml_is_applied_with_its_queue_and_defaults(cluster: FakeCluster) -> None:
    manifest = """
apiVersion: asyncjob.dev/v1alpha1
kind: AsyncQueue
metadata: {name: mail}
spec:
  defaults: {executionTimeoutSeconds: 99, queueTimeoutSeconds: 5, retryPolicy: {maxRetries: 9}}
---
apiVersion: asyncjob.dev/v1alpha1
kind: AsyncJob
metadata: {name: first, labels: {team: a}}
spec: {type: echo, payload: {a: null}, queue: mail}
---
apiVersion: asyncjob.dev/v1alpha1
kind: AsyncJob
metadata: {name: lost}
spec: {type: unknown, queue: mail}
"""
    first, lost = await cluster.apply(manifest)
    await cluster.run_until_idle()
    assert first.result == {"a": None}
    assert first.model.metadata.labels == {"team": "a"}
    effective = first.status.effective
    assert effective
    assert (effective.execution_timeout_seconds, effective.max_retries) == (99, 9)
    assert (lost.reason, cluster.clock.elapsed) == (Reason.QUEUE_TIMEOUT, 5)


async def test_an_applied_change_is_that_of_a_user(cluster: FakeCluster) -> None:
    (job,) = await cluster.apply(builders.job("j", type="unknown"))
    version = job.manifest["metadata"]
    await cluster.apply(builders.job("j", type="unknown", priority=9))
    assert job.model.spec.priority == 9
    assert job.manifest["metadata"] != version
    with pytest.raises(InvalidError, match=r"spec.type cannot be changed.*\(spec.fixed.type\)"):
        await cluster.apply(builders.job("j", type="other"))
    await cluster.apply(builders.job("j", type="unknown", cancel=True))
    await cluster.run_until_idle()
    assert job.phase is Phase.CANCELLED


async def test_names_are_unique_and_missing_ones_not_found(cluster: FakeCluster) -> None:
    await cluster.submit("echo", name="twice")
    with pytest.raises(AlreadyExistsError):
        await cluster.submit("echo", name="twice")
    with pytest.raises(ObjectNotFoundError):
        cluster.job("never")
    assert cluster.job("twice").name == "twice"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"deduplicationId": "x"}, "deduplicationId"),
        ({"payloadFrom": {"uri": "s3://a/b"}}, "payloadFrom: give the payload itself"),
    ],
)
async def test_what_is_not_faked_of_a_job_is_refused(
    cluster: FakeCluster, spec: dict[str, Any], words: str
) -> None:
    with pytest.raises(NotFakedError, match=words):
        await cluster.apply(builders.job("j", **spec))


@pytest.mark.parametrize(
    "spec",
    [
        {"paused": True},
        {"maxConcurrency": 1},
        {"maxConcurrencyPerKey": 1},
        {"maxQueued": 1},
        {"rateLimit": {"count": 1}},
        {"unknownType": "DeadLetter"},
        {"retention": {"maxFinished": 1}},
    ],
)
async def test_limits_of_queues_are_refused_not_ignored(
    cluster: FakeCluster, spec: dict[str, Any]
) -> None:
    with pytest.raises(
        NotFakedError, match=f"does not implement {next(iter(spec))} of an AsyncQueue"
    ):
        await cluster.apply(builders.queue(**spec))


async def test_schedules_are_refused(cluster: FakeCluster) -> None:
    with pytest.raises(NotFakedError, match="no cron jobs"):
        await cluster.apply(builders.cron_job())


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ("a: [", "not YAML"),
        ("- 1", "a manifest is an object"),
        ("kind: Pod", "kind 'Pod' is none of"),
        (builders.job("j", colour="blue"), 'unknown field "spec.colour"'),
        (builders.job("j", priority="5"), "spec.priority"),
        ({**builders.job("No Name")}, "metadata.name"),
        ({"kind": "AsyncJob", "spec": {"type": "echo"}, "metadata": {}}, "metadata.name"),
    ],
)
async def test_manifests_that_do_not_fit_are_refused(
    cluster: FakeCluster, manifest: Any, words: str
) -> None:
    with pytest.raises(InvalidError, match=words):
        await cluster.apply(manifest)
    assert cluster.jobs == []


async def test_every_version_is_kept(cluster: FakeCluster) -> None:
    job = await cluster.submit("echo", 1)
    await cluster.run_until_idle()
    versions = [version["metadata"]["resourceVersion"] for version in job.versions]  # type: ignore[index,call-overload]  # objects are plain JSON
    assert versions == ["1", "2", "3"]
    assert repr(job) == "<FakeJob job-1: Succeeded>"
