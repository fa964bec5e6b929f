"""What is refused, with its words."""

from typing import Any

from contract.cluster import Cluster
from contract.scenarios.base import phase, refusal, run, scenario


@scenario
async def manifests_that_do_not_fit_are_refused(cluster: Cluster) -> list[Any]:
    return [
        await refusal(cluster.create("bad", "echo", 1, **spec))
        for spec in (
            {"colour": "blue"},
            {"retryPolicy": {"maxRetrys": 1}},
            {"priority": 5000},
            {"priority": "5"},
            {"queue": "No Queue"},
            {"retryPolicy": {"backoff": "Quadratic"}},
            {"notBefore": "tomorrow"},
            {"retryPolicy": {"initialDelaySeconds": 5, "maxDelaySeconds": 1}},
            {"notBefore": cluster.time(9), "notAfter": cluster.time(8)},
        )
    ]


@scenario
async def what_is_about_a_past_is_refused_at_creation(cluster: Cluster) -> list[Any]:
    return [
        await refusal(cluster.create("bad", "echo", **spec))
        for spec in ({"redrive": 1}, {"rerun": 1})
    ]


@scenario
async def illegal_changes_of_the_spec_are_refused(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "nobody-knows-it", {"a": 1}, priority=3)
    refused = [
        await refusal(cluster.change("job", **spec))
        for spec in (
            {"payload": {"a": 2}},
            {"type": "echo"},
            {"queue": "other"},
            {"executionTimeoutSeconds": 5},
            {"redrive": 1},
            {"colour": "blue"},
        )
    ]
    await cluster.change("job", priority=7)
    await cluster.change("job", rerun=3)
    job = await cluster.until("job", lambda status: status.get("reruns", 0) == 3)
    refused.append(await refusal(cluster.change("job", rerun=2)))
    await cluster.change("job", cancel=True)
    refused.append(await refusal(cluster.change("job", cancel=False)))
    return [*refused, job, await cluster.until("job", phase("Cancelled"))]


@scenario
async def a_succeeded_job_is_beyond_cancel_and_redrive(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "echo", 1)
    controls: tuple[dict[str, Any], ...] = ({"cancel": True}, {"redrive": 1})
    return [job, *[await refusal(cluster.change("job", **control)) for control in controls]]
