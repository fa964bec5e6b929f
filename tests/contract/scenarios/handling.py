"""What handlers do: results, failures, retries, checkpoints, time limits."""

from typing import Any

from contract.cluster import Cluster
from contract.scenarios.base import AT_ONCE, SOON, phase, run, scenario, why


@scenario
async def a_result_is_kept(cluster: Cluster) -> list[Any]:
    value = {"list": [1, None, {"null": None}], "text": "ü", "big": 2**53, "float": 0.5}
    job = await run(cluster, "echo", value)
    assert why(job) == ("Succeeded", None)
    assert job["status"]["result"] == value
    return [job]


@scenario
async def types_and_the_handlers_own_policy_are_heeded(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "order", {"number": 1}, retryPolicy={"maxRetries": 2})
    effective = job["status"]["effective"]
    assert (effective["executionTimeoutSeconds"], effective["maxRetries"]) == (77, 2)
    assert job["status"]["result"] == {"number": 1, "day": "2026-01-01"}
    return [job]


@scenario
async def a_missing_payload_and_the_request_reach_a_sync_handler(cluster: Cluster) -> list[Any]:
    request = {"headers": {"x-a": ["1", "2"]}, "queryParams": {"q": []}}
    job = await run(cluster, "default", request=request)
    assert job["status"]["result"] == {"payload": 7, "request": request}
    return [job]


@scenario
async def a_payload_is_refused_by_the_handlers_schema(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "order", {"number": "many", "day": 5})
    assert why(job) == ("DeadLetter", "InvalidPayload")
    return [job]


@scenario
async def failures_are_retried_until_one_attempt_succeeds(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "fails", ["network", "value"], retryPolicy=SOON)
    assert job["status"]["result"] == "attempt 3"
    assert (job["status"]["attempt"], job["status"].get("retries", 0)) == (3, 2)
    return [job]


@scenario
async def retries_are_exhausted(cluster: Cluster) -> list[Any]:
    policy = {**AT_ONCE, "maxRetries": 2}
    job = await run(cluster, "fails-sync", ["other"] * 5, retryPolicy=policy)
    assert why(job) == ("DeadLetter", "RetriesExhausted")
    assert (job["status"]["attempt"], job["status"].get("retries", 0)) == (3, 2)
    return [job]


@scenario
async def no_retries_are_wanted(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "fails", ["lookup"], retryPolicy={"maxRetries": 0})
    assert why(job) == ("DeadLetter", "RetriesExhausted")
    return [job]


@scenario
async def history_keeps_the_newest_20_changes(cluster: Cluster) -> list[Any]:
    policy = {**AT_ONCE, "maxRetries": 11}
    job = await run(cluster, "fails", ["other"] * 11, retryPolicy=policy)
    assert len(job["status"]["history"]) == 20
    assert job["status"]["historyOmitted"] == 3
    return [job]


@scenario
async def a_handler_gives_up(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "gives-up", {"message": "no such user", "category": "Quota"})
    assert why(job) == ("DeadLetter", "NotRetryable")
    assert job["status"]["error"]["category"] == "Quota"
    return [job]


@scenario
async def a_handler_asks_for_a_retry_in_its_own_time_whatever_the_category(
    cluster: Cluster,
) -> list[Any]:
    policy = {"maxRetries": 2, "noRetryOn": ["Timeout"], "initialDelaySeconds": 3000}
    await cluster.create("job", "asks-again", {"times": 2, "after": 0.2}, retryPolicy=policy)
    job = await cluster.until("job", phase("Succeeded"))
    entry = job["status"]["history"][0]
    assert (entry["phase"], entry["reason"]) == ("Retrying", "RetryRequested")
    assert (job["status"]["result"], "error" in job["status"]) == (3, False)
    return [job]


@scenario
async def a_retry_asked_for_without_a_delay_takes_the_backoff(cluster: Cluster) -> list[Any]:
    policy = {"maxRetries": 5, "initialDelaySeconds": 3000, "jitter": 0}
    await cluster.create("job", "asks-again", {"times": 1}, retryPolicy=policy)
    job = await cluster.until("job", phase("Retrying"))
    assert job["status"]["retryDelaySeconds"] == 3000
    return [job]


@scenario
async def retries_asked_for_are_exhausted_too(cluster: Cluster) -> list[Any]:
    policy = {"maxRetries": 1}
    job = await run(cluster, "asks-again", {"times": 9, "after": 0}, retryPolicy=policy)
    assert why(job) == ("DeadLetter", "RetriesExhausted")
    assert job["status"]["error"]["category"] == "Timeout"
    return [job]


@scenario
async def no_retry_on_ends_a_category_at_once(cluster: Cluster) -> list[Any]:
    policy = {**AT_ONCE, "noRetryOn": ["Network"], "retryOn": ["Network", "Validation"]}
    job = await run(cluster, "fails", ["value", "network"], retryPolicy=policy)
    assert why(job) == ("DeadLetter", "NotRetryable")
    assert (job["status"]["attempt"], job["status"].get("retries", 0)) == (2, 1)
    return [job]


@scenario
async def retry_on_ends_every_other_category_at_once(cluster: Cluster) -> list[Any]:
    policy = {**AT_ONCE, "retryOn": ["Network", "Timeout"]}
    job = await run(cluster, "fails-sync", ["network", "timeout", "lookup"], retryPolicy=policy)
    assert why(job) == ("DeadLetter", "NotRetryable")
    assert job["status"]["error"]["category"] == "NotFound"
    return [job]


@scenario
async def a_category_of_the_apps_own_is_heeded(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "fails", ["quota"], retryPolicy={"noRetryOn": ["Quota"]})
    assert why(job) == ("DeadLetter", "NotRetryable")
    return [job]


@scenario
async def progress_and_checkpoint_are_kept_on_failure(cluster: Cluster) -> list[Any]:
    values = {"checkpoints": [1, {"a": {"b": None}}]}
    job = await run(cluster, "reports", values, retryPolicy={"maxRetries": 0})
    assert job["status"]["checkpoint"] == {"a": {"b": None}}
    assert job["status"]["progress"] == {"percent": 10, "message": "step 1"}
    return [job]


@scenario
async def a_checkpoint_of_none_forgets_the_one_before(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "reports", {"checkpoints": [1, None]}, retryPolicy={"maxRetries": 0})
    assert "checkpoint" not in job["status"]
    return [job]


@scenario
async def a_handler_that_exits_has_failed(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "exits", retryPolicy={"maxRetries": 0})
    assert job["status"]["error"]["type"] == "HandlerExitError"
    return [job]


@scenario
async def a_result_that_is_too_large_is_refused(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "big", 300_000)
    assert why(job) == ("DeadLetter", "ResultRefused")
    return [job]


@scenario
async def a_result_that_is_not_json_is_refused(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "not-json")
    assert why(job) == ("DeadLetter", "ResultRefused")
    return [job]


@scenario
async def a_checkpoint_that_is_too_large_is_refused(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "big-checkpoint", 300_000)
    assert why(job) == ("DeadLetter", "ResultRefused")
    return [job]


@scenario
async def an_attempt_runs_out_of_time(cluster: Cluster) -> list[Any]:
    policy = {**AT_ONCE, "maxRetries": 1}
    job = await run(cluster, "hangs", executionTimeoutSeconds=1, retryPolicy=policy)
    assert job["status"]["history"][0]["reason"] == "ExecutionTimeout"
    assert job["status"]["result"] == "second time lucky"
    return [job]


@scenario
async def an_attempt_runs_out_of_time_for_good(cluster: Cluster) -> list[Any]:
    policy = {"noRetryOn": ["Timeout"]}
    job = await run(cluster, "hangs", executionTimeoutSeconds=1, retryPolicy=policy)
    assert why(job) == ("DeadLetter", "ExecutionTimeout")
    return [job]


@scenario
async def steps_are_kept_with_their_results(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "steps", {"total": 0})
    packed = {"null": None, "attempt": 1}
    assert job["status"]["result"] == {"day": "2026-01-01", "packed": packed, "nothing": None}
    kept = job["status"]["steps"]
    assert kept["charge/1~a"]["result"] == {"day": "2026-01-01", "note": "nothing to pay"}
    assert (kept["pack"]["result"], "result" in kept["nothing"]) == (packed, False)
    return [job]


@scenario
async def another_attempt_goes_on_from_the_steps_done(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "steps", {"fail": True}, retryPolicy=SOON)
    assert job["status"]["attempt"] == 2
    assert job["status"]["result"]["packed"]["attempt"] == 1
    assert [job["status"]["steps"][key]["attempt"] for key in ("pack", "nothing")] == [1, 2]
    return [job]


@scenario
async def results_of_steps_beyond_256_kib_are_refused(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "steps-sync", 9)
    assert why(job) == ("DeadLetter", "ResultRefused")
    assert "step '8'" in job["status"]["message"]
    assert len(job["status"]["steps"]) == 8
    return [job]


@scenario
async def a_step_taken_twice_is_a_dead_letter(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "steps-sync", -1)
    assert why(job) == ("DeadLetter", "NotRetryable")
    assert "step '0'" in job["status"]["message"]
    return [job]
