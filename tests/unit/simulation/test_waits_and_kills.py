"""A handler with steps and all waits, whose worker or operator is killed at each of its requests.

The request at which it is killed arrives or does not; who has sent it never knows. Operator and
worker are the real ones, in virtual time; the API server in memory enforces the rules. Whichever
request it is: the result of each step is stored once, the body of a step runs again only if its
write was not stored, no park is counted twice, and the job succeeds.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import Any, Final
from unittest.mock import patch

import pytest

from asyncjob import JobContext, RetryPolicy, WorkerApp
from asyncjob.names import job_path
from asyncjob_simulation.apiserver import Call, Fault
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.network import Connections
from asyncjob_simulation.quiet_cluster import Object, QuietCluster
from support.driven.waiting_jobs import over, played, stored

PATH: Final = job_path(NAMESPACE, "order")
KEYS: Final = ("reserve", "ship")
LEAVES: Final = 2
SOON: Final = {"maxRetries": 0, "maxCrashes": 2, "initialDelaySeconds": 1, "maxDelaySeconds": 1}
ARRIVES_WITHIN: Final = 0.05
"""What was sent before its sender died has arrived by then; nothing is started again so soon."""


class Story:
    """The life of one job, in which a process is killed at one of its requests, or at none."""

    def __init__(self) -> None:
        self.bodies = Counter[str]()
        self.requests = list[str]()
        self.kept: Object = {}
        """The steps that were stored once the last request of the killed process was over."""

        self.then = Counter[str]()
        """The bodies that had run by then."""

        self.is_killed = False
        self._is_begun = False

    def run(self, role: str, number: int | None = None, lost: str = "after") -> Object:
        """Return the status at the end."""

        async def story(cluster: QuietCluster) -> Object:
            with self._killed_at(cluster, role, number, lost):
                return await self._play(cluster)

        return played(self._app, story)

    def _app(self, _: HandlerCalls) -> WorkerApp:
        app = WorkerApp()

        async def body(key: str) -> str:
            self.bodies[key] += 1
            await asyncio.sleep(0.01)
            return f"{key} {self.bodies[key]}"

        @app.handler("order")
        async def order(job: JobContext, _: Any) -> list[Any]:
            first = await job.step(KEYS[0], body, KEYS[0])
            await job.sleep("pause", seconds=5)
            told = await job.signal("go")
            retry = RetryPolicy(max_crashes=2, initial_delay_seconds=1, max_delay_seconds=1)
            leaves = [job.submit("leaf", key=str(one), retry=retry) for one in range(LEAVES)]
            views = await job.gather(*[await leaf for leaf in leaves], check=True)
            last = await job.step(KEYS[1], body, KEYS[1])
            return [first, told, [view.result for view in views], last]

        @app.handler("leaf")
        async def leaf(job: JobContext, _: Any) -> str:
            await asyncio.sleep(4)
            return "leaf"

        return app

    @contextmanager
    def _killed_at(
        self, cluster: QuietCluster, role: str, number: int | None, lost: str
    ) -> Iterator[None]:
        judge = Connections.judge

        def judged(connections: Connections, call: Call) -> Fault:
            usual, process = judge(connections, call), connections._process
            if not self._is_begun or not process.name.startswith(role) or not counts(role, call):
                return usual
            self.requests.append(f"{call.method} {call.path}")
            if self.is_killed or len(self.requests) - 1 != number:
                return usual
            self.is_killed = True
            cluster.loop.call_soon(process.kill, context=Context())
            cluster.loop.call_later(ARRIVES_WITHIN, self._look, cluster, context=Context())
            return Fault(usual.before, float("inf"), lost=lost)  # type: ignore[arg-type]

        with patch.object(Connections, "judge", judged):
            yield

    def _look(self, cluster: QuietCluster) -> None:
        self.kept = dict(stored(cluster, "order").get("steps") or {})
        self.then = Counter(self.bodies)

    async def _play(self, cluster: QuietCluster) -> Object:
        self._is_begun = True
        cluster.submit("order", "order", retryPolicy=SOON)
        for _ in range(300):
            await asyncio.sleep(1)
            status = stored(cluster, "order")
            if over(status):
                return {**status, "leaves": len(cluster.jobs()) - 1}
            if status.get("reason") == "WaitingForSignal":
                signal = {"payload": "gone", "sentBy": "people", "sentAt": status["lastUpdateTime"]}
                cluster.write("PATCH", PATH, {"spec": {"signals": {"go": signal}}})
        raise AssertionError(stored(cluster, "order"))


def counts(role: str, call: Call) -> bool:
    """Return whether a request is one to be killed at.

    Of a worker those about jobs, the children included; of an operator its writes of the parent.
    """
    if role == "operator":
        return call.is_write and call.path.startswith(PATH)
    return "/asyncjobs" in call.path and not call.is_watch


def check(story: Story, end: Object, parks: int, where: object) -> None:
    assert end["phase"] == "Succeeded", (where, end)
    steps = {key: end["steps"][key]["result"] for key in KEYS}
    assert end["result"] == [steps[KEYS[0]], "gone", ["leaf"] * LEAVES, steps[KEYS[1]]], where
    for key in KEYS:
        if key in story.kept:
            assert end["steps"][key] == story.kept[key], (where, key)
            assert story.bodies[key] == story.then[key], (where, key)
        # The body ran again only where it had, and what it came to was not stored.
        begun = bool(story.then[key]) and key not in story.kept
        assert story.bodies[key] == 1 + begun, (where, key)
        assert steps[key] == f"{key} {story.bodies[key]}", (where, key)
    assert end["leaves"] == LEAVES, where
    assert end.get("parks", 0) <= parks, (where, end.get("parks", 0))
    assert end["attempt"] == 1 + end.get("parks", 0) + end.get("crashes", 0), where
    assert end.get("crashes", 0) <= 1, where


@pytest.mark.timeout(600)
@pytest.mark.parametrize("role", ["worker", "operator"])
def test_whichever_request_is_the_last_each_result_is_stored_once_and_kept(role: str) -> None:
    undisturbed = Story()
    end = undisturbed.run(role)
    check(undisturbed, end, 3, "undisturbed")
    assert (end.get("parks", 0), end.get("crashes", 0)) == (3, 0)
    again = Counter[str]()
    for number, request in enumerate(undisturbed.requests):
        for lost in ("before", "after"):
            story, where = Story(), (number, request, lost)
            end = story.run(role, number, lost)
            assert story.is_killed, where
            check(story, end, 3, where)
            again.update(key for key in KEYS if story.bodies[key] > 1)
            again[f"crashed {end.get('crashes', 0)}"] += 1
    if role == "operator":
        assert again == {"crashed 0": 2 * len(undisturbed.requests)}
    else:
        assert again[KEYS[0]] == again[KEYS[1]] == 1
        assert again["crashed 1"] > again["crashed 0"] > 0
