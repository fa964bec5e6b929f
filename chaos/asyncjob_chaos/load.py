"""What keeps the processes busy, and notes every job that it was told is accepted.

Jobs come at a steady rate, in turn through the gateway and straight to the API server, by the
clients that users have: they go on asking while nobody answers.
"""

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final

from asyncjob.client import AsyncJobsClient, AsyncKubernetesJobsClient
from asyncjob.errors import AsyncJobError
from asyncjob.models.base import RetryPolicy
from asyncjob.rest.submission import Submission
from asyncjob_chaos.handlers import LONG, PLAIN
from asyncjob_chaos.judging.verdict import SUCCESS, Accepted

PATIENCE_SECONDS: Final = 120.0
BURST_CONNECTIONS: Final = 24
LEASE_SECONDS: Final = 5
"""The shortest that a job may have: faults need not last long to outlast it."""

RETRY: Final = RetryPolicy(
    max_retries=20, max_crashes=50, initial_delay_seconds=0.5, max_delay_seconds=2
)
"""Jobs that share a worker with poison die with it, and are not to blame."""

Fields = dict[str, Any]


@dataclass(frozen=True)
class LoadKind:
    """A kind of jobs."""

    name: str
    rate: float
    """Jobs in a second."""

    at_first: int
    """Jobs that are submitted at once, before anything else."""

    fields: Callable[[int], Fields]
    """What a job of a number is submitted with."""

    queue_spec: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the jobs' queue; none: it has no AsyncQueue."""


def _plain(number: int) -> Fields:
    payload = {"seconds": 0.05 + 0.05 * (number % 5), "scratch": number % 4 == 0}
    return {"type": PLAIN, "payload": payload}


KEYS: Final = 6


def _long(number: int) -> Fields:
    if number >= LONG_AT_FIRST and number % 3:
        return _plain(number)
    payload = {"seconds": 0.4, "steps": 6 + number % 5, "fails": number % 5 == 0}
    return {"type": LONG, "payload": payload, "concurrency_key": f"key-{number % KEYS}"}


LONG_AT_FIRST: Final = 30

LOADS: Final = (
    LoadKind("plain", rate=10.0, at_first=20, fields=_plain),
    LoadKind(
        "long",
        rate=4.0,
        at_first=LONG_AT_FIRST,
        fields=_long,
        queue_spec={"maxConcurrency": 40, "maxConcurrencyPerKey": 4},
    ),
)
"""Short jobs, and long ones with heartbeats, checkpoints, retries and limits beside short ones."""


class Load:
    """Submits in a thread of its own, until it is stopped."""

    def __init__(
        self, kind: LoadKind, namespace: str, queue: str, kubeconfig: str, gateway: str
    ) -> None:
        self.accepted: list[Accepted] = []
        self.refused: list[str] = []
        """What clients were told instead, at the end of their patience."""

        self._kind, self._namespace, self._queue = kind, namespace, queue
        self._kubeconfig, self._gateway = kubeconfig, gateway
        self._numbers = itertools.count()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._stack = AsyncExitStack()
        self._clients: list[Any] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._ticker: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Open the clients, and begin."""
        self._thread.start()
        self._run(self._open())

    def stop_submitting(self) -> None:
        """Submit no more, and wait for all answers."""
        self._run(self._finish())

    def close(self) -> None:
        """End it, with open requests."""
        if self._thread.is_alive():
            self._run(self._close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    def submit(self, fields: Fields, ends: frozenset[str] = SUCCESS) -> None:
        """Submit one job more, straight to the API server."""
        self._run(self._submit(self._clients[0], fields, next(self._numbers), ends))

    def submit_burst(self, count: int) -> None:
        """Submit so many jobs more as fast as they are taken."""
        self._run(self._submit_burst(count), within=3600.0)

    def _run(self, work: Coroutine[Any, Any, None], within: float = 300.0) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(within)

    async def _open(self) -> None:
        direct = await AsyncKubernetesJobsClient.connect(
            self._kubeconfig, self._namespace, patience=PATIENCE_SECONDS
        )
        gateway = AsyncJobsClient(self._gateway, patience=PATIENCE_SECONDS)
        self._clients = [await self._stack.enter_async_context(it) for it in (direct, gateway)]
        for _ in range(self._kind.at_first):
            self._begin_next()
        self._ticker = asyncio.create_task(self._tick())

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1 / self._kind.rate)
            self._begin_next()

    def _begin_next(self) -> None:
        number = next(self._numbers)
        client = self._clients[number % len(self._clients)]
        work = self._submit(client, self._kind.fields(number), number, SUCCESS)
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _submit(self, client: Any, fields: Fields, number: int, ends: frozenset[str]) -> None:
        key = f"key-{number}"
        submission = Submission(
            queue=self._queue,
            idempotency_key=key,
            **{"lease_duration_seconds": LEASE_SECONDS, "retry_policy": RETRY, **fields},
        )
        try:
            done = await client.submit(submission)
        except AsyncJobError as error:
            self.refused.append(f"{key}: {error}")
        else:
            self.accepted.append(Accepted(done.id, key, time.monotonic(), ends))

    async def _submit_burst(self, count: int) -> None:
        left = iter(range(count))

        async def one_after_another() -> None:
            for _ in left:
                number = next(self._numbers)
                await self._submit(self._clients[0], _plain(number), number, SUCCESS)

        await asyncio.gather(*(one_after_another() for _ in range(BURST_CONNECTIONS)))

    async def _finish(self) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
        await asyncio.gather(*self._tasks)

    async def _close(self) -> None:
        # Whoever waited for a burst may have been interrupted; its tasks are in the loop still.
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._stack.aclose()
