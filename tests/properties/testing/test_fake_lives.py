"""Whatever users and fate do to jobs in the fake cluster, no rule is broken and none is stuck."""

import asyncio
from itertools import pairwise
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from asyncjob import Fail, JobContext, Retry, WorkerApp
from asyncjob.client.errors import JobStateError
from asyncjob.errors import InvalidError
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob.testing import FakeCluster, FakeJob
from support.judging.checker import change_violations

app = WorkerApp()
DEEDS = ("cancel", "suspend", "resume", "redrive", "rerun", "crash", "drain", "wait", "step")


@app.handler("acts")
async def acts(job: JobContext, payload: list[str]) -> int:
    """Do what the payload says for this attempt: a word per attempt, the last for all others."""
    word = payload[min(job.attempt, len(payload)) - 1]
    await job.checkpoint(job.attempt)
    match word:
        case "fail":
            raise Fail("no")
        case "retry":
            raise Retry(after=3)
        case "error":
            raise ValueError("wrong")
        case "sleep":
            await asyncio.sleep(50)
        case "ignore":
            await ignore()
    await job.progress(90)
    return job.attempt


async def ignore() -> None:
    for _ in range(3):
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            continue


words = st.lists(
    st.sampled_from(["fail", "retry", "error", "sleep", "ignore", "end"]), min_size=1, max_size=4
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "executionTimeoutSeconds": st.sampled_from([1, 60, 1000]),
        "notBefore": st.just("2026-01-01T00:01:00Z"),
        "notAfter": st.just("2026-01-01T00:02:00Z"),
        "deadlineSeconds": st.sampled_from([30, 90, 1500]),
        "suspend": st.booleans(),
        "cancelGraceSeconds": st.sampled_from([0, 5]),
        "retryPolicy": st.fixed_dictionaries(
            {}, optional={"maxRetries": st.integers(0, 2), "maxCrashes": st.integers(0, 2)}
        ),
    },
)
deeds = st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 1)), max_size=12)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(words, specs), min_size=1, max_size=2), deeds)
@example(
    [(["fail"], {"deadlineSeconds": 30})], [("step", 0), ("wait", 0), ("wait", 0), ("redrive", 0)]
)
def test_no_rule_is_broken_and_all_comes_to_rest(
    jobs: list[tuple[list[str], dict[str, Any]]], deeds: list[tuple[str, int]]
) -> None:
    asyncio.run(live(jobs, deeds))


async def live(jobs: list[tuple[list[str], dict[str, Any]]], deeds: list[tuple[str, int]]) -> None:
    async with FakeCluster(app, draw=0.9) as cluster:
        for number, (payload, spec) in enumerate(jobs):
            await cluster.apply(manifest(f"job-{number}", payload, spec))
        for deed, number in deeds:
            await do(cluster, cluster.jobs[number % len(jobs)], deed)
        await cluster.run_until_idle()
        for job in cluster.jobs:
            assert job.phase in FINISHED_PHASES or job.model.spec.suspend
            for before, after in pairwise(job.versions):
                assert change_violations(before, after) == []


async def do(cluster: FakeCluster, job: FakeJob, deed: str) -> None:
    if deed == "wait":
        await cluster.advance(20)
    elif deed == "step":
        seen = len(job.versions)
        await cluster.run_until(
            lambda: len(job.versions) > seen or job.phase in FINISHED_PHASES or held(job)
        )
    elif deed in {"crash", "drain"}:
        if job.phase is Phase.RUNNING:
            await getattr(job, deed)()
    else:
        try:
            await getattr(job, deed)()
        except InvalidError:
            return
        except JobStateError as error:
            if deed != "redrive" or "its deadline passed" not in str(error):
                raise


def held(job: FakeJob) -> bool:
    return job.phase is Phase.PENDING


def manifest(name: str, payload: list[str], spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncJob",
        "metadata": {"name": name},
        "spec": {"type": "acts", "payload": payload, **spec},
    }
