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
AHEAD = 10.0
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
