"""What belongs to an app: parents and their children."""

from typing import Any

from contract.cluster import Cluster
from contract.scenarios.base import run, scenario


@scenario
async def a_parent_waits_for_its_children(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "fans-out", [3, -1], priority=4)
    assert job["status"]["result"] == [
        ["Succeeded", "", 6],
        ["DeadLetter", "NotRetryable", None],
    ]
    return [job]


@scenario
async def a_child_whose_name_is_taken_fails_its_parent(cluster: Cluster) -> list[Any]:
    await cluster.create("other", "nobody-knows-it")
    other = await cluster.get("other")
    policy = {"maxRetries": 0}
    job = await run(cluster, "submits-badly", other["metadata"]["name"], retryPolicy=policy)
    assert job["status"]["error"]["type"] == "SubmitConflictError"
    return [job]
