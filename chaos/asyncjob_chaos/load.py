"""What keeps the processes busy, and notes every job, array and signal that is accepted.

Jobs come at a steady rate, in turn through the gateway and straight to the API server, by the
clients that users have: they go on asking while nobody answers.
"""

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from asyncjob.client import AsyncJobsClient, AsyncKubernetesJobsClient
from asyncjob.client.errors import JobStateError
from asyncjob.errors import AsyncJobError
from asyncjob.rest.arrays import ArraySubmission
from asyncjob.rest.submission import Submission
from asyncjob_chaos import orders
from asyncjob_chaos.handlers import LEASE_SECONDS, RETRY
from asyncjob_chaos.judging.verdict import SUCCESS, Accepted
from asyncjob_chaos.judging.waits import SentSignal
from asyncjob_chaos.orders import Fields, Order, SignalOrder
from asyncjob_chaos.wait_handlers import SIGNAL

PATIENCE_SECONDS: Final = 120.0
BURST_CONNECTIONS: Final = 24
SIGNAL_TRIES: Final = 3
"""How often a signal is sent, each time by the other client, until one is answered."""


@dataclass(frozen=True)
class LoadKind:
    """A kind of jobs."""

    name: str
    rate: float
    """Jobs in a second."""

    at_first: int
    """Jobs that are submitted at once, before anything else."""

    order: Callable[[int], Order]
    """What is submitted under a number."""

    queue_spec: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the jobs' queue; none: it has no AsyncQueue."""


LOADS: Final = (
    LoadKind("plain", rate=10.0, at_first=20, order=orders.plain),
    LoadKind(
        "long",
        rate=4.0,
        at_first=orders.LONG_AT_FIRST,
        order=orders.long,
        queue_spec={"maxConcurrency": 40, "maxConcurrencyPerKey": 4},
    ),
    LoadKind("waits", rate=3.0, at_first=18, order=orders.waits),
)
"""Short jobs; long ones with heartbeats, checkpoints, retries and limits beside short ones; and
jobs that stop and go on, and arrays."""


class Load:
    """Submits in a thread of its own, until it is stopped."""

    def __init__(
        self, kind: LoadKind, namespace: str, queue: str, kubeconfig: str, gateway: str
    ) -> None:
        self.accepted: list[Accepted] = []
        self.arrays: list[Accepted] = []
        self.signals: list[SentSignal] = []
        self.refused: list[str] = []
        """What clients were told instead, at the end of their patience."""

        self._kind, self._namespace = kind, namespace
        self._kubeconfig, self._gateway = kubeconfig, gateway
        self._defaults: Fields = {
            "queue": queue,
            "lease_duration_seconds": LEASE_SECONDS,
            "retry_policy": RETRY,
        }
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

    def _run(self, work: Coroutine[Any, Any, object], within: float = 300.0) -> None:
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
        task = asyncio.create_task(self._carry_out(self._kind.order(number), number))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_out(self, order: Order, number: int) -> None:
        client = self._clients[number % len(self._clients)]
        if order.is_array:
            await self._submit_array(client, order.fields, number)
            return
        name = await self._submit(client, order.fields, number, SUCCESS)
        if name and order.signal:
            await self._send_signal(name, order.signal, number)

    async def _submit(
        self, client: Any, fields: Fields, number: int, ends: frozenset[str]
    ) -> str | None:
        key = f"key-{number}"
        submission = Submission(idempotency_key=key, **{**self._defaults, **fields})
        try:
            done = await client.submit(submission)
        except AsyncJobError as error:
            self.refused.append(f"{key}: {error}")
            return None
        name: str = done.id
        self.accepted.append(Accepted(name, key, time.monotonic(), ends))
        return name

    async def _submit_array(self, client: Any, fields: Fields, number: int) -> None:
        name = f"array-{number}"
        try:
            await client.submit_array(ArraySubmission(name=name, **self._defaults, **fields))
        except AsyncJobError as error:
            self.refused.append(f"{name}: {error}")
        else:
            self.arrays.append(Accepted(name, name, time.monotonic()))

    async def _send_signal(self, job: str, order: SignalOrder, number: int) -> None:
        await asyncio.sleep(order.delay)
        first = number // 2  # so that a job's client and its signal's are every pair in turn
        accepted = None
        for turn in range(first, first + SIGNAL_TRIES):
            with suppress(AsyncJobError):
                accepted = await self._try_signal(self._clients[turn % 2], job, number)
                break
        self.signals.append(
            SentSignal(job, SIGNAL, number, accepted=accepted, in_time=order.in_time)
        )

    async def _try_signal(self, client: Any, job: str, value: int) -> bool:
        """Return whether the job has the signal; one that is refused may be there already."""
        try:
            await client.signal(job, SIGNAL, value)
        except JobStateError:
            found = await self._clients[0].get(job)
            return SIGNAL in {signal.name for signal in found.signals}
        return True

    async def _submit_burst(self, count: int) -> None:
        left = iter(range(count))

        async def one_after_another() -> None:
            for _ in left:
                number = next(self._numbers)
                fields = orders.plain(number).fields
                await self._submit(self._clients[0], fields, number, SUCCESS)

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
