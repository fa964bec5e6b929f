"""Submissions to a queue with a `maxQueued`, while the gateway cannot tell what there is."""

from typing import Any, cast

import pytest

from asyncjob.client.connection import Answer, Call
from asyncjob.client.kubernetes.connection import AnswerHook
from asyncjob.kube import KubeSession
from asyncjob.rest.submission import Submission
from asyncjob_gateway import operations, problem_types
from asyncjob_gateway.cache import queue_capacity
from asyncjob_gateway.cache.namespace import NamespaceCache
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.operations import Operations
from asyncjob_gateway.telemetry import GatewayMetrics
from support.in_memory.fake_api import NAMESPACE, FakeApi, MemoryConnection, Step


class Watched(MemoryConnection):
    """What the gateway does is done in memory, and looked at."""

    def __init__(self, api: FakeApi, look: AnswerHook) -> None:
        self._api = api
        self._look = look

    def do(self, step: Step) -> Answer:
        return self._api.do(step)

    async def send(self, call: Call) -> Answer:
        answer = await super().send(call)
        await self._look(call, answer)
        return answer


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Operations:
    """Return a gateway whose watch stands still, before a queue that takes four jobs."""
    monkeypatch.setattr(operations, "KubeConnection", Watched)
    monkeypatch.setattr(queue_capacity, "WATCH_WAIT_SECONDS", 0.01)
    view = NamespaceCache(NAMESPACE)
    view.jobs.replace([])
    queue: Any = {"metadata": {"name": "narrow"}, "spec": {"maxQueued": 4}}
    view._queues.replace([queue])

    async def allow(right: object) -> None:
        """Everybody may do everything."""

    return Operations(cast("KubeSession", FakeApi()), view, GatewayMetrics(), allow)


async def test_a_repeat_is_never_refused_though_the_watch_stands_still(gateway: Operations) -> None:
    first = Submission(type="test", queue="narrow", idempotency_key="once")
    done = await gateway.submit(first)
    with pytest.raises(RefusedError, match="maxQueued") as refused:
        await gateway.submit(first.model_copy(update={"idempotency_key": "another"}))
    assert refused.value.kind is problem_types.QUEUE_FULL
    repeated = await gateway.submit(first)
    assert (repeated.id, repeated.created) == (done.id, False)
