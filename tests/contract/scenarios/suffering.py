"""What workers suffer: crashes and drains."""

from typing import Any

from contract.cluster import Cluster
from contract.scenarios.base import AT_ONCE, crashing, phase, progress, why


@crashing
async def a_job_resumes_from_its_checkpoint_after_a_crash(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "resumes", 3, queue=cluster.queue, retryPolicy=AT_ONCE)
    await cluster.until("job", lambda status: "checkpoint" in status)
    await cluster.crash_worker_of("job")
    job = await cluster.until("job", phase("Succeeded"))
    counters = ("attempt", "crashes", "retries", "releases")
    assert [job["status"].get(name, 0) for name in counters] == [2, 1, 0, 0]
    assert job["status"]["result"]["resumed"] == {"done": 3, "deep": {"null": None}}
    return [job]


@crashing
async def the_crash_budget_is_exhausted_and_a_redrive_renews_it(cluster: Cluster) -> list[Any]:
    policy = {**AT_ONCE, "maxCrashes": 0}
    await cluster.create("job", "hangs", queue=cluster.queue, retryPolicy=policy)
    await cluster.until("job", progress(1))
    await cluster.crash_worker_of("job")
    dead = await cluster.until("job", phase("DeadLetter"))
    assert why(dead) == ("DeadLetter", "CrashBudgetExhausted")
    await cluster.change("job", redrive=1)
    job = await cluster.until("job", phase("Succeeded"))
    assert (job["status"].get("crashes", 0), job["status"].get("redrives", 0)) == (0, 1)
    return [dead, job]


@crashing
async def a_draining_worker_gives_the_job_back(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "resumes", 1, queue=cluster.queue)
    await cluster.until("job", lambda status: "checkpoint" in status)
    await cluster.drain_worker_of("job")
    job = await cluster.until("job", phase("Succeeded"))
    counters = ("attempt", "crashes", "retries", "releases")
    assert [job["status"].get(name, 0) for name in counters] == [2, 0, 0, 1]
    return [job]


@crashing
async def a_crash_leaves_the_steps_done(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "steps", {"hang": True}, queue=cluster.queue, retryPolicy=AT_ONCE)
    await cluster.until("job", lambda status: "pack" in status.get("steps", {}))
    await cluster.crash_worker_of("job")
    job = await cluster.until("job", phase("Succeeded"))
    steps = job["status"]["steps"]
    taken = {key: steps[key]["attempt"] for key in ("charge/1~a", "pack", "nothing")}
    assert taken == {"charge/1~a": 1, "pack": 1, "nothing": 2}
    assert job["status"]["result"]["packed"] == {"null": None, "attempt": 1}
    return [job]
