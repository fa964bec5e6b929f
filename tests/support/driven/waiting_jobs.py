"""A job in virtual time, as a person follows it: its status, changes of its spec, and a story.

Operator and worker are the real ones; the API server in memory enforces the rules. The job that a
story is about is called "job".
"""

import asyncio
import gc
import sys
import warnings
from collections.abc import Awaitable, Callable
from typing import Any, Final
from unittest.mock import patch

from asyncjob import WorkerApp
from asyncjob.names import job_path
from asyncjob_simulation.clocks import quiet
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.quiet_cluster import Object, QuietCluster

FINISHED: Final = {"Succeeded", "DeadLetter", "Cancelled"}
SOON: Final = {"maxRetries": 0, "maxCrashes": 1, "initialDelaySeconds": 1, "maxDelaySeconds": 1}
SENDER: Final = "people"

Story = Callable[[QuietCluster], Awaitable[Object]]


def stored(cluster: QuietCluster, name: str = "job") -> Object:
    """Return the status of a job."""
    found = cluster.find(job_path(NAMESPACE, name))
    assert found is not None
    return dict(found["status"])


async def until(
    cluster: QuietCluster,
    is_met: Callable[[Object], bool],
    name: str = "job",
    *,
    within: float = 7200,
    step: float = 1.0,
) -> Object:
    """Return the status once it meets a condition, which is looked at every `step` seconds."""
    for _ in range(int(within / step)):
        status = stored(cluster, name)
        if is_met(status):
            return status
        await asyncio.sleep(step)
    raise AssertionError(stored(cluster, name))


def parked(status: Object) -> bool:
    """Return whether the job waits without a slot."""
    return "waiting" in status


def over(status: Object) -> bool:
    """Return whether the job has finished."""
    return status["phase"] in FINISHED


def change(cluster: QuietCluster, name: str = "job", **spec: Any) -> bool:
    """Change the spec as a person does; returns whether that is taken."""
    found = cluster.find(job_path(NAMESPACE, name))
    assert found is not None
    found["spec"] |= spec
    return cluster.write("PUT", job_path(NAMESPACE, name), found) is not None


def send(cluster: QuietCluster, name: str = "go", payload: Any = "gone") -> bool:
    """Send the job a signal as a person does; returns whether it is taken."""
    return change(cluster, signals={name: {"payload": payload, "sentBy": SENDER}})


def now(cluster: QuietCluster) -> float:
    """Return the seconds since the beginning."""
    return -cluster.until(0.0)


def played(app: Callable[[HandlerCalls], WorkerApp], story: Story, **cluster_as: Any) -> Object:
    """Play a story in a cluster of its own, and return what it has come to."""
    # What the dead have left is freed in here: they cannot clean up, and say so.
    with patch.object(sys, "unraisablehook", lambda _: None), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = QuietCluster(1, app, **cluster_as)
        end = cluster.run(story)
        with quiet():
            del cluster
            gc.collect()
    return end
