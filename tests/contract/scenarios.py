"""What jobs go through, written once for the fake cluster and the real one.

A scenario returns the objects to compare; what it expects itself it asserts. It waits only for
what lasts, since a real cluster is looked at from time to time.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from asyncjob.errors import InvalidError
from contract.cluster import Cluster, Condition, Obj

Scenario = Callable[[Cluster], Awaitable[list[Any]]]

SCENARIOS: dict[str, Scenario] = {}
CRASHING: set[str] = set()
"""Scenarios that end a worker: they have a queue, and workers, of their own."""

AT_ONCE: dict[str, Any] = {"initialDelaySeconds": 0, "jitter": 0}
AHEAD = 5.0
"""So far ahead that a busy machine, too, has created the job by then; in seconds."""

SOON: dict[str, Any] = {"initialDelaySeconds": 0.3, "jitter": 0, "backoff": "Exponential"}


def scenario(run: Scenario) -> Scenario:
    SCENARIOS[run.__name__] = run
    return run


def crashing(run: Scenario) -> Scenario:
    CRASHING.add(run.__name__)
    return scenario(run)


def phase(wanted: str) -> Condition:
    return lambda status: status["phase"] == wanted


def progress(percent: int) -> Condition:
    return lambda status: status.get("progress", {}).get("percent") == percent


def why(job: Obj) -> tuple[str, str | None]:
    return job["status"]["phase"], job["status"].get("reason")


async def run(cluster: Cluster, type_: str, payload: Any = None, **spec: Any) -> Obj:
    """Create a job and return it once it has finished."""
    await cluster.create("job", type_, payload, **spec)
    return await cluster.until("job", lambda status: "completionTime" in status)


async def refusal(action: Awaitable[None]) -> tuple[int, str]:
    """Return with which code and words something is refused."""
    try:
        await action
    except InvalidError as error:
        return error.status, str(error)
    raise AssertionError("it was not refused")


# ---- what handlers do


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
    assert (job["status"]["attempt"], job["status"]["retries"]) == (3, 2)
    return [job]


@scenario
async def retries_are_exhausted(cluster: Cluster) -> list[Any]:
    policy = {**AT_ONCE, "maxRetries": 2}
    job = await run(cluster, "fails-sync", ["other"] * 5, retryPolicy=policy)
    assert why(job) == ("DeadLetter", "RetriesExhausted")
    assert (job["status"]["attempt"], job["status"]["retries"]) == (3, 2)
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
    assert (job["status"]["attempt"], job["status"]["retries"]) == (2, 1)
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


# ---- what workers suffer


@crashing
async def a_job_resumes_from_its_checkpoint_after_a_crash(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "resumes", 3, queue=cluster.queue, retryPolicy=AT_ONCE)
    await cluster.until("job", lambda status: "checkpoint" in status)
    await cluster.crash_worker_of("job")
    job = await cluster.until("job", phase("Succeeded"))
    counters = ("attempt", "crashes", "retries", "releases")
    assert [job["status"][name] for name in counters] == [2, 1, 0, 0]
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
    assert (job["status"]["crashes"], job["status"]["redrives"]) == (0, 1)
    return [dead, job]


@crashing
async def a_draining_worker_gives_the_job_back(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "resumes", 1, queue=cluster.queue)
    await cluster.until("job", lambda status: "checkpoint" in status)
    await cluster.drain_worker_of("job")
    job = await cluster.until("job", phase("Succeeded"))
    counters = ("attempt", "crashes", "retries", "releases")
    assert [job["status"][name] for name in counters] == [2, 0, 0, 1]
    return [job]


# ---- what users wish


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
    assert (job["status"]["attempt"], job["status"]["retries"], job["status"]["redrives"]) == (
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
    job = await cluster.until("job", lambda status: status["reruns"] == 2)
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


# ---- what time brings


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


# ---- what is refused


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
    job = await cluster.until("job", lambda status: status["reruns"] == 3)
    refused.append(await refusal(cluster.change("job", rerun=2)))
    await cluster.change("job", cancel=True)
    refused.append(await refusal(cluster.change("job", cancel=False)))
    return [*refused, job, await cluster.until("job", phase("Cancelled"))]


@scenario
async def a_succeeded_job_is_beyond_cancel_and_redrive(cluster: Cluster) -> list[Any]:
    job = await run(cluster, "echo", 1)
    wishes: tuple[dict[str, Any], ...] = ({"cancel": True}, {"redrive": 1})
    return [job, *[await refusal(cluster.change("job", **wish)) for wish in wishes]]


# ---- what belongs to an app


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
