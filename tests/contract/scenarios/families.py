"""What belongs to an app: parents and their children."""

from typing import Any

from contract.cluster import Cluster
from contract.scenarios.base import run, scenario, why


@scenario
async def a_parent_waits_for_its_children(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "fans-out", [3, -1], priority=4)
    assert job["status"]["result"] == [
        ["Succeeded", "", 6],
        ["DeadLetter", "NotRetryable", None],
    ]
    return [job]


@scenario
async def a_parent_waits_for_its_children_without_a_slot(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "gathers", [3, -1])
    waiting = await cluster.until("job", lambda status: "waiting" in status)
    assert why(waiting) == ("Pending", "WaitingForChildren")
    (wait,) = waiting["status"]["waiting"]
    assert len(wait["children"]) == 2
    job = await cluster.until("job", lambda status: "completionTime" in status)
    assert job["status"]["result"] == [
        ["Succeeded", "", 6],
        ["DeadLetter", "NotRetryable", None],
    ]
    assert (job["status"]["attempt"], job["status"].get("parks", 0)) == (2, 1)
    return [job]


@scenario
async def a_child_that_is_gathered_twice_is_answered_twice(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "gathers", [3, 3])
    assert job["status"]["result"] == [["Succeeded", "", 6]] * 2
    return [job]


@scenario
async def a_child_whose_name_is_taken_fails_its_parent(cluster: Cluster) -> list[Any]:
    await cluster.create("other", "nobody-knows-it")
    other = await cluster.get("other")
    policy = {"maxRetries": 0}
    job = await run(cluster, "submits-badly", other["metadata"]["name"], retryPolicy=policy)
    assert job["status"]["error"]["type"] == "SubmitConflictError"
    return [job]
