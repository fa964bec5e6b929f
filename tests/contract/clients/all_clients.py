"""The four clients with one interface: a loop in a thread of its own drives an async one."""

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

from asyncjob.client import (
    AsyncJobsClient,
    AsyncKubernetesJobsClient,
    Jobs,
    JobsClient,
    KubernetesJobsClient,
)
from contract.clients.full_stack import FullStack


class Blocking:
    """An async client, with the methods of a plain one."""

    def __init__(self, client: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._loop = loop

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def call(*args: Any, **options: Any) -> Any:
            made = method(*args, **options)
            return self.until_done(made) if inspect.isawaitable(made) else self._iterate(made)

        return call

    def until_done(self, work: Any) -> Any:
        """Return what the coroutine returns."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _iterate(self, values: Any) -> Iterator[Any]:
        ended = object()
        try:
            while (value := self.until_done(_next(values, ended))) is not ended:
                yield value
        finally:
            self.until_done(values.aclose())


async def _next(values: Any, ended: object) -> Any:
    return await anext(values, ended)


@contextlib.contextmanager
def in_a_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop in a thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="client under test", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@contextlib.contextmanager
def kubernetes(full_stack: FullStack) -> Iterator[Jobs]:
    with KubernetesJobsClient.connect(str(full_stack.kubeconfig)) as jobs:
        yield jobs


@contextlib.contextmanager
def async_kubernetes(full_stack: FullStack) -> Iterator[Jobs]:
    with in_a_loop() as loop:
        made = AsyncKubernetesJobsClient.connect(str(full_stack.kubeconfig))
        client = asyncio.run_coroutine_threadsafe(made, loop).result()
        blocking = Blocking(client, loop)
        yield cast("Jobs", blocking)
        blocking.until_done(client.close())


@contextlib.contextmanager
def rest(full_stack: FullStack) -> Iterator[Jobs]:
    with JobsClient(full_stack.gateway.url, token=full_stack.token) as jobs:
        yield jobs


@contextlib.contextmanager
def async_rest(full_stack: FullStack) -> Iterator[Jobs]:
    with in_a_loop() as loop:
        client = AsyncJobsClient(full_stack.gateway.url, token=full_stack.token)
        blocking = Blocking(client, loop)
        yield cast("Jobs", blocking)
        blocking.until_done(client.close())


ALL_CLIENTS = {
    "kubernetes": kubernetes,
    "async-kubernetes": async_kubernetes,
    "rest": rest,
    "async-rest": async_rest,
}
