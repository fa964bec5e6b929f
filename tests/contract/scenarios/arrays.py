"""What arrays go through: counted, failed, redriven, suspended, cancelled, refused."""

from typing import Any

from contract.cluster import Cluster, Condition
from contract.scenarios.base import phase, refusal, scenario

AT_ONCE: dict[str, Any] = {"initialDelaySeconds": 0, "jitter": 0}


def ended(status: dict[str, Any]) -> bool:
    return "completionTime" in status


def counts(array: dict[str, Any]) -> tuple[str, int, int, str]:
    status = array["status"]
    return (
        status["phase"],
        status["succeeded"],
        status["failed"],
        status.get("failedItems", ""),
    )


def opened(number: int) -> Condition:
    """So many chunks are open, and known to exist."""
    return lambda status: (
        status.get("openCount") == number and all("uid" in one for one in status["open"])
    )


@scenario
async def all_items_of_an_array_are_run(cluster: Cluster) -> list[Any]:
    await cluster.create_array("array", "item", 7, chunkSize=3, payload={"shared": None})
    array = await cluster.until_array("array", ended)
    assert counts(array) == ("Succeeded", 7, 0, "")
    return [array]


@scenario
async def items_that_are_done_already_are_not_run(cluster: Cluster) -> list[Any]:
    values = [["fails"], "a", "b", ["fails"], "c", ["fails"]]
    items = {"inline": values, "skip": "0,2-3,5"}
    await cluster.create_array("array", "picky-item", items, chunkSize=4)
    array = await cluster.until_array("array", ended)
    assert counts(array) == ("Succeeded", 6, 0, "")
    return [array]


@scenario
async def items_are_given_as_they_stand_in_the_array(cluster: Cluster) -> list[Any]:
    values = [{"null": None}, "b", None, ["fails"], 1.5]
    await cluster.create_array("array", "picky-item", values, chunkSize=2)
    array = await cluster.until_array("array", ended)
    assert counts(array) == ("Failed", 4, 1, "3")
    return [array]


@scenario
async def an_item_is_tried_again_within_its_chunk(cluster: Cluster) -> list[Any]:
    values = [["shaky", 2], ["shaky", 4], "quiet"]
    await cluster.create_array("array", "picky-item", values, itemRetries=2, retryPolicy=AT_ONCE)
    array = await cluster.until_array("array", ended)
    assert counts(array) == ("Failed", 2, 1, "1")
    (error,) = array["status"]["errors"]
    assert (error["item"], error["type"]) == (1, "ValueError")
    return [array]


@scenario
async def failed_items_are_redriven_alone(cluster: Cluster) -> list[Any]:
    values = [["fails"], "a", "b", ["fails"]]
    await cluster.create_array("array", "picky-item", values, chunkSize=1, parallelism=1)
    failed = await cluster.until_array("array", ended)
    assert counts(failed) == ("Failed", 2, 2, "0,3")
    await cluster.change_array("array", redrive=2)
    again = await cluster.until_array(
        "array", lambda status: status.get("redrives") == 2 and ended(status)
    )
    assert counts(again) == ("Failed", 2, 2, "0,3")
    return [failed, again]


@scenario
async def some_items_may_fail(cluster: Cluster) -> list[Any]:
    values = [["fails"], "a", "b", "c"]
    await cluster.create_array("array", "picky-item", values, maxFailedPercent=25)
    array = await cluster.until_array("array", ended)
    assert counts(array) == ("Succeeded", 3, 1, "0")
    return [array]


@scenario
async def beyond_max_failed_no_chunk_is_created(cluster: Cluster) -> list[Any]:
    values = [["fails"], ["fails"], "a", "b"]
    options = {"chunkSize": 2, "parallelism": 1, "maxFailed": 1}
    await cluster.create_array("array", "picky-item", values, **options)
    array = await cluster.until_array("array", ended)
    assert (array["status"]["reason"], array["status"]["next"]) == ("TooManyFailed", 2)
    return [array]


@scenario
async def an_array_created_suspended_waits(cluster: Cluster) -> list[Any]:
    await cluster.create_array("array", "item", 3, suspend=True)
    held = await cluster.until_array("array", lambda status: status.get("reason") == "Suspended")
    assert await cluster.chunks_of("array") == []
    await cluster.change_array("array", suspend=False)
    return [held, await cluster.until_array("array", phase("Succeeded"))]


@scenario
async def a_cancelled_array_ends_without_its_chunks(cluster: Cluster) -> list[Any]:
    await cluster.create_array("array", "nobody-knows-it", 5, chunkSize=2, parallelism=2)
    waiting = await cluster.until_array("array", opened(2))
    await cluster.change_array("array", cancel=True)
    array = await cluster.until_array("array", phase("Cancelled"))
    assert counts(array) == ("Cancelled", 0, 0, "")
    return [waiting, array]


@scenario
async def a_chunk_that_waits_too_long_is_replaced(cluster: Cluster) -> list[Any]:
    await cluster.create_array("array", "nobody-knows-it", 2, queueTimeoutSeconds=1)
    replaced = await cluster.until_array("array", lambda status: status.get("generation", 0) > 1)
    assert (replaced["status"]["failed"], replaced["status"]["next"]) == (0, 2)
    await cluster.change_array("array", cancel=True)
    return []


@scenario
async def a_payload_that_is_too_large_fails_the_array(cluster: Cluster) -> list[Any]:
    await cluster.create_array("array", "item", 1, payload="x" * 70_000)
    array = await cluster.until_array("array", ended)
    assert array["status"]["reason"] == "PayloadTooLarge"
    return [array]


@scenario
async def arrays_that_do_not_fit_are_refused(cluster: Cluster) -> list[Any]:
    one = {"count": 1}
    return [
        await refusal(cluster.create_array("bad", "item", source, **spec))
        for source, spec in (
            ({}, {}),
            ({"count": 1, "inline": [1]}, {}),
            ({"count": 0}, {}),
            ({"count": 3, "skip": "1-3"}, {}),
            ({"inline": [1], "skip": "1"}, {}),
            ({"count": 9, "skip": "5-3"}, {}),
            ({"count": 9, "skip": "some"}, {}),
            (one, {"maxFailed": 1, "maxFailedPercent": 1}),
            (one, {"redrive": 1}),
            (one, {"chunkSize": 20_000}),
            (one, {"colour": "blue"}),
        )
    ]


@scenario
async def illegal_changes_of_an_array_are_refused(cluster: Cluster) -> list[Any]:
    await cluster.create_array("array", "nobody-knows-it", 2, suspend=True)
    await cluster.until_array("array", lambda status: status.get("reason") == "Suspended")
    refused = [
        await refusal(cluster.change_array("array", **spec))
        for spec in ({"chunkSize": 7}, {"redrive": 1}, {"priority": 3})
    ]
    await cluster.change_array("array", cancel=True)
    refused.append(await refusal(cluster.change_array("array", cancel=False)))
    await cluster.create_array("failed", "picky-item", [["fails"]])
    await cluster.until_array("failed", ended)
    refused.append(await refusal(cluster.change_array("failed", cancel=True)))
    return [*refused, await cluster.until_array("array", phase("Cancelled"))]


@scenario
async def an_array_starts_after_its_time_and_what_it_depends_on(cluster: Cluster) -> list[Any]:
    fetch = cluster.full_name("fetch")
    after = [{"name": cluster.full_name("first")}, {"array": fetch}]
    await cluster.create_array("array", "item", 2, dependsOn=after, notBefore=cluster.time(1))
    await cluster.create("first", "echo", 1)
    await cluster.create_array("fetch", "item", 1, suspend=True)
    waits = await cluster.until_array(
        "array", lambda status: status.get("message") == f"waiting for array {fetch}"
    )
    assert waits["status"]["phase"] == "Pending"
    await cluster.change_array("fetch", suspend=False)
    array = await cluster.until_array("array", ended)
    assert counts(array) == ("Succeeded", 2, 0, "")
    return [array]


@scenario
async def a_job_fails_with_the_array_that_it_depends_on(cluster: Cluster) -> list[Any]:
    name = cluster.full_name("array")
    await cluster.create("job", "echo", 1, dependsOn=[{"array": name}])
    await cluster.create_array("after", "item", 1, dependsOn=[{"array": name}])
    await cluster.until("job", phase("Pending"))
    await cluster.until_array("after", lambda status: "message" in status)
    await cluster.create_array("array", "picky-item", [["fails"]])
    job = await cluster.until("job", phase("DeadLetter"))
    assert job["status"]["message"] == f"cannot start: array {name} has failed (ItemsFailed)"
    after = await cluster.until_array("after", ended)
    assert after["status"]["reason"] == "DependencyFailed"
    return [job, after]


@scenario
async def dependencies_that_cannot_be_are_refused(cluster: Cluster) -> list[Any]:
    bad = cluster.full_name("bad")
    twice = [{"array": "a"}, {"array": "a", "outcome": "Any"}]
    wrong: list[list[Any]] = [
        [{"outcome": "Any"}],
        [{"name": "a", "array": "a"}],
        [{"array": "a", "children": True}],
        twice,
    ]
    jobs = [await refusal(cluster.create("bad", "echo", dependsOn=one)) for one in wrong]
    jobs.append(await refusal(cluster.create("bad", "echo", dependsOn=[{"name": bad}])))
    arrays = [await refusal(cluster.create_array("bad", "item", 1, dependsOn=x)) for x in wrong]
    itself = cluster.create_array("bad", "item", 1, dependsOn=[{"array": bad}])
    return [*jobs, *arrays, await refusal(itself)]
