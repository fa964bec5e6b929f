"""What time brings: starts, deadlines, timeouts."""

from typing import Any

from contract.cluster import Cluster
from contract.scenarios.base import AHEAD, phase, run, scenario, why


@scenario
async def a_job_starts_at_its_time(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "echo", 1, notBefore=cluster.time(AHEAD))
    scheduled = await cluster.until("job", phase("Scheduled"))
    return [scheduled, await cluster.until("job", phase("Succeeded"))]


@scenario
async def a_start_time_that_has_passed_holds_nothing_back(cluster: Cluster) -> list[Any]:
    window = {"notBefore": cluster.time(-60), "notAfter": cluster.time(3600)}
    return [await run(cluster, "echo", 1, **window)]


@scenario
async def a_job_suspended_beyond_its_start_time_is_scheduled_first(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "echo", 1, suspend=True, notBefore=cluster.time(AHEAD))
    held = await cluster.until("job", phase("Pending"))
    await cluster.change("job", suspend=False)
    return [held, await cluster.until("job", phase("Succeeded"))]


@scenario
async def a_job_that_comes_too_late_is_cancelled(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "echo", 1, notAfter=cluster.time(-1))
    assert why(job) == ("Cancelled", "DeadlineExceeded")
    return [job]


@scenario
async def a_scheduled_job_that_is_suspended_misses_its_deadline(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "echo", 1, suspend=True, notAfter=cluster.time(AHEAD))
    assert why(job) == ("Cancelled", "DeadlineExceeded")
    return [job]


@scenario
async def a_job_that_nobody_claims_times_out(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "nobody-knows-it", queueTimeoutSeconds=1)
    assert why(job) == ("DeadLetter", "QueueTimeout")
    return [job]


@scenario
async def a_running_job_is_stopped_at_its_deadline(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "hangs", deadlineSeconds=10)
    assert why(job) == ("Cancelled", "DeadlineExceeded")
    assert job["status"]["attempt"] == 1
    return [job]


@scenario
async def a_suspended_job_ends_at_its_deadline(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "echo", 1, suspend=True, deadlineSeconds=8)
    assert why(job) == ("Cancelled", "DeadlineExceeded")
    return [job]


@scenario
async def a_parked_job_ends_at_its_deadline(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "release", deadlineSeconds=12)
    assert why(job) == ("Cancelled", "DeadlineExceeded")
    assert (job["status"]["attempt"], job["status"].get("parks", 0)) == (1, 1)
    return [job]


@scenario
async def a_job_that_finishes_in_time_takes_no_note_of_its_deadline(
    cluster: Cluster,
) -> list[Any]:
    return [await run(cluster, "echo", 1, deadlineSeconds=3600)]
