"""What users change of a job later: cancel, dismiss, redrive, rerun, suspend."""

from typing import Any

from contract.cluster import Cluster
from contract.scenarios.base import AT_ONCE, phase, progress, run, scenario, why


@scenario
async def a_waiting_job_is_cancelled(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "nobody-knows-it")
    await cluster.change("job", cancel=True)
    job = await cluster.until("job", phase("Cancelled"))
    assert why(job) == ("Cancelled", "CancelRequested")
    return [job]


@scenario
async def a_running_job_is_cancelled(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "tidies-up")
    await cluster.until("job", progress(1))
    await cluster.change("job", cancel=True)
    job = await cluster.until("job", phase("Cancelled"))
    assert job["status"]["checkpoint"] == "interrupted"
    return [job]


@scenario
async def a_handler_that_ignores_the_cancel_is_abandoned(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "stubborn", cancelGraceSeconds=1)
    await cluster.until("job", progress(1))
    await cluster.change("job", cancel=True)
    return [await cluster.until("job", phase("Cancelled"))]


@scenario
async def a_retrying_job_is_cancelled(cluster: Cluster) -> list[Any]:
    policy = {"initialDelaySeconds": 3000, "jitter": 0}
    await cluster.create("job", "fails", ["other"], retryPolicy=policy)
    retrying = await cluster.until("job", phase("Retrying"))
    await cluster.change("job", cancel=True)
    return [retrying, await cluster.until("job", phase("Cancelled"))]


@scenario
async def a_dead_letter_is_dismissed(cluster: Cluster) -> list[Any]:
    dead = await run(cluster, "gives-up", {"message": "no"})
    await cluster.change("job", cancel=True)
    job = await cluster.until("job", phase("Cancelled"))
    assert why(job) == ("Cancelled", "Dismissed")
    return [dead, job]


@scenario
async def a_dead_letter_is_redriven(cluster: Cluster) -> list[Any]:
    policy = {**AT_ONCE, "maxRetries": 1}
    await cluster.create("job", "fails", ["value", "value"], retryPolicy=policy)
    await cluster.until("job", phase("DeadLetter"))
    await cluster.change("job", redrive=4)
    job = await cluster.until("job", phase("Succeeded"))
    assert (
        job["status"]["attempt"],
        job["status"].get("retries", 0),
        job["status"].get("redrives", 0),
    ) == (
        3,
        0,
        4,
    )
    return [job]


@scenario
async def a_job_is_rerun(cluster: Cluster) -> list[Any]:
    await cluster.create(
        "job", "echo", [None, 1], priority=5, idempotencyKey="key", executionTimeoutSeconds=9
    )
    await cluster.until("job", phase("Succeeded"))
    await cluster.change("job", rerun=2)
    job = await cluster.until("job", lambda status: status.get("reruns", 0) == 2)
    child = await cluster.until("job-r2", phase("Succeeded"))
    assert child["spec"]["rerunOf"]["uid"] == job["metadata"]["uid"]
    return [job, child]


@scenario
async def a_suspended_job_waits_until_it_is_resumed(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "echo", 1, suspend=True)
    held = await cluster.until("job", phase("Pending"))
    assert why(held) == ("Pending", "Suspended")
    await cluster.change("job", suspend=False)
    return [held, await cluster.until("job", phase("Succeeded"))]


@scenario
async def a_suspended_job_is_cancelled(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "echo", 1, suspend=True)
    await cluster.until("job", phase("Pending"))
    await cluster.change("job", cancel=True)
    return [await cluster.until("job", phase("Cancelled"))]
