"""What the gateway holds of large jobs while it waits for the API server, for many callers."""

import weakref
from typing import Any, cast

import pytest

from asyncjob.client.connection import Answer
from asyncjob.kube import KubeSession
from asyncjob_gateway import operations
from asyncjob_gateway.cache.namespace import NamespaceCache
from asyncjob_gateway.operations import Operations
from asyncjob_gateway.telemetry import GatewayMetrics
from support.in_memory.fake_api import NAMESPACE, FakeApi, Step
from support.objects.builders import stored
from unit.gateway.test_full_queues import Watched


class HandedOut(dict[str, Any]):
    """An object that can be referred to weakly."""


class Api(FakeApi):
    """Notes at each request how many of the jobs it has given away somebody still holds."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[weakref.ref[HandedOut]] = []
        self.held_at: list[int] = []

    def do(self, step: Step) -> Answer:
        self.held_at.append(sum(one() is not None for one in self.given))
        answer = super().do(step)
        body = HandedOut(cast("Any", answer.body))
        self.given.append(weakref.ref(body))
        return Answer(body)


@pytest.fixture
def api() -> Api:
    made = Api()
    made.put(stored("j", {"phase": "Queued"}, queue="closed"))
    return made


@pytest.fixture
def gateway(api: Api, monkeypatch: pytest.MonkeyPatch) -> Operations:
    """Return a gateway that knows a queue which is paused."""
    monkeypatch.setattr(operations, "KubeConnection", Watched)
    view = NamespaceCache(NAMESPACE)
    view.jobs.replace([])
    queue: Any = {"metadata": {"name": "closed"}, "spec": {"paused": True}}
    view._queues.replace([queue])

    async def allow(right: object) -> None:
        """Everybody may do everything."""

    return Operations(cast("KubeSession", api), view, GatewayMetrics(), allow)


async def test_no_job_is_held_while_its_queue_is_asked_for(gateway: Operations, api: Api) -> None:
    job = await gateway.get("j")
    assert job.message
    assert "paused" in job.message
    assert api.held_at == [0]


async def test_no_job_is_held_while_what_is_asked_of_it_is_written(
    gateway: Operations, api: Api
) -> None:
    await gateway.cancel("j", cascade=False)
    assert api.held_at == [0, 0]
