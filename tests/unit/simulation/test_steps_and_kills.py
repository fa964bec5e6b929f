"""Steps of a handler whose worker is killed, at each turn of its event loop in which it can be.

Operator and worker are the real ones, in virtual time; the API server in memory enforces the rules.
"""

import asyncio
from collections import Counter
from typing import Any, Final

import pytest

from asyncjob import JobContext, WorkerApp
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.quiet_cluster import Object, QuietCluster
from support.driven.waiting_jobs import over, played, stored

KEYS: Final = ("reserve", "charge", "ship")
SOON: Final = {"maxRetries": 0, "maxCrashes": 1, "initialDelaySeconds": 1, "maxDelaySeconds": 1}


class Order:
    """An order with three steps, and how often the body of each has run."""

    def __init__(self) -> None:
        self.bodies = Counter[str]()

    def app(self, _: HandlerCalls) -> WorkerApp:
        app = WorkerApp()

        async def body(key: str, *before: int) -> int:
            self.bodies[key] += 1
            await asyncio.sleep(0.01)
            return sum(before) + 1

        @app.handler("order")
        async def order(job: JobContext, _: Any) -> list[int]:
            first = await job.step(KEYS[0], body, KEYS[0])
            second = await job.step(KEYS[1], body, KEYS[1], first)
            third = await job.step(KEYS[2], body, KEYS[2], first, second)
            return [first, second, third]

        return app


def killed_after(turns: int) -> tuple[Object, Object, Counter[str], Counter[str]]:
    """Return the steps stored when the worker died, the end, and the bodies run by then and in all.

    The worker is killed after this many callbacks of its event loop since the job was created.
    """
    order, met = Order(), []

    async def story(cluster: QuietCluster) -> Object:
        process = cluster.worker.process
        assert process is not None
        cluster.submit("order", "order", retryPolicy=SOON)
        process.on_death.append(
            lambda: met.append((stored(cluster, "order"), Counter(order.bodies)))
        )
        process.kill_after(turns)
        for _ in range(60):
            await asyncio.sleep(5)
            if over(stored(cluster, "order")):
                break
        return stored(cluster, "order")

    end = played(order.app, story)
    died, then = met[0] if met else (end, Counter(order.bodies))
    return died.get("steps", {}), end, then, order.bodies


def check(turns: int) -> str:
    """Check one kill, and return what it met: the steps stored then and the bodies begun."""
    kept, end, then, bodies = killed_after(turns)
    assert (end["phase"], end["result"]) == ("Succeeded", [1, 2, 4]), (turns, end)
    assert {key: end["steps"][key]["result"] for key in KEYS} == dict(
        zip(KEYS, (1, 2, 4), strict=True)
    )
    for key in KEYS:
        if key in kept:
            assert end["steps"][key] == kept[key], turns
            assert bodies[key] == then[key] == 1, (turns, key)
        assert 1 <= bodies[key] <= 1 + (key not in kept), (turns, key)
    return f"attempt {end['attempt']}, stored {len(kept)}, begun {len(then)}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "every", [3, pytest.param(1, marks=pytest.mark.soak)], ids=["some callbacks", "each callback"]
)
def test_wherever_the_worker_is_killed_each_result_is_stored_once_and_kept(every: int) -> None:
    met = Counter[str]()
    turns = 0
    while met["attempt 1, stored 3, begun 3"] < 3:
        met[check(turns)] += 1
        turns += every
    for done in range(4):
        assert met[f"attempt 2, stored {done}, begun {done}"], met
        if done < 3:
            assert met[f"attempt 2, stored {done}, begun {done + 1}"], met
