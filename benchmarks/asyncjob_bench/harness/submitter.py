"""`python -m asyncjob_bench.harness.submitter`: a user's process, which submits jobs.

Its order comes on stdin, its answer goes to stdout.
"""

import asyncio
import itertools
import json
import random
import resource
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import uvloop

from asyncjob.client import AsyncKubernetesJobsClient
from asyncjob.kube import KubeSession, load_access
from asyncjob.rest.submission import Submission
from asyncjob.shards import shard_label
from asyncjob_bench.errors import WrongOutcomeError
from asyncjob_bench.harness.templates import SUBMITTER

Submit = Callable[[str], Awaitable[object]]
"""Submits one of that name."""

PAUSE_SECONDS: Final = (0.03, 0.09)
"""Between two jobs that are picked up one by one; uneven, so as not to beat with any timer."""

ENTRY_SECONDS: Final = 10.0
PARK_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.1


@asynccontextmanager
async def opened(order: dict[str, Any]) -> AsyncIterator[Submit]:
    """Open what submits: the client that users have, or for other objects than ours a bare POST."""
    if "path" not in order:
        async with await AsyncKubernetesJobsClient.connect(order["kubeconfig"]) as client:
            yield lambda name: client.submit(_submission(order, name))
        return
    access = await load_access(order["kubeconfig"])
    async with KubeSession(access, field_manager=SUBMITTER) as session:
        yield lambda name: session.create(order["path"], _named(order, name))


def _submission(order: dict[str, Any], name: str) -> Submission:
    return Submission.model_validate({**order["asked"], "name": name})


def _named(order: dict[str, Any], name: str) -> dict[str, Any]:
    return {**order["asked"], "metadata": {"name": name, "labels": shard_label(name)}}


async def burst(order: dict[str, Any]) -> dict[str, Any]:
    """Submit so many jobs on so many connections as fast as they are taken."""
    numbers = itertools.count()
    async with opened(order) as submit:
        before, started = _cpu(), time.time()

        async def one_after_another() -> None:
            while (number := next(numbers)) < order["count"]:
                await submit(_name(order, number))

        async with asyncio.TaskGroup() as group:
            for _ in range(order["connections"]):
                group.create_task(one_after_another())
        return {"started": started, "ended": time.time(), "cpu": _cpu() - before}


async def one_by_one(order: dict[str, Any]) -> dict[str, Any]:
    """Submit one job at a time to idle workers, each once the handler of the last was entered.

    Returns nanoseconds: of each create's round trip, and from its answer to the handler's entry.
    """
    chance = random.Random(order["count"])
    trips, entries = [], []
    with _listening(order["stamps"]) as stamps:
        async with opened(order) as submit:
            for number in range(-order["warm_up"], order["count"]):
                sent = _now()
                await submit(_name(order, number))
                answered = _now()
                entered = await asyncio.to_thread(_entry, stamps, _name(order, number))
                if number >= 0:
                    trips.append(answered - sent)
                    entries.append(entered - answered)
                await asyncio.sleep(chance.uniform(*PAUSE_SECONDS))
    return {"round_trips": trips, "pickups": entries}


async def signals(order: dict[str, Any]) -> dict[str, Any]:
    """Submit jobs that wait for a signal, and send it to one of them at a time.

    Returns nanoseconds: of each signal's round trip, and from its answer to where the handler goes
    on.
    """
    chance = random.Random(order["count"])
    trips, resumes = [], []
    names = [_name(order, number) for number in range(order["count"])]
    with _listening(order["stamps"]) as stamps:
        async with await AsyncKubernetesJobsClient.connect(order["kubeconfig"]) as client:
            for name in names:
                await client.submit(_submission(order, name))
            for name in names:
                await _parked(client, name)
            for name in names:
                sent = _now()
                await client.signal(name, order["signal"])
                answered = _now()
                resumed = await asyncio.to_thread(_entry, stamps, name)
                trips.append(answered - sent)
                resumes.append(resumed - answered)
                await asyncio.sleep(chance.uniform(*PAUSE_SECONDS))
    return {"round_trips": trips[order["warm_up"] :], "resumes": resumes[order["warm_up"] :]}


async def _parked(client: AsyncKubernetesJobsClient, name: str) -> None:
    async with asyncio.timeout(PARK_SECONDS):
        while (await client.get(name)).phase != "Pending":  # noqa: ASYNC110
            await asyncio.sleep(POLL_SECONDS)


def _name(order: dict[str, Any], number: int) -> str:
    return f"{order['prefix']}{number}" if number >= 0 else f"{order['prefix']}w{-number}"


def _listening(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.bind(path)
    listener.settimeout(ENTRY_SECONDS)
    return listener


def _entry(stamps: socket.socket, expected: str) -> int:
    name, entered = stamps.recv(4096).decode().split()
    if name != expected:
        raise WrongOutcomeError(f"{name} began while {expected} was the only job")
    return int(entered)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _now() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


MODES: Final = {"burst": burst, "one-by-one": one_by_one, "signals": signals}


def main() -> None:
    """Carry out one order."""
    order = json.load(sys.stdin)
    json.dump(uvloop.run(MODES[order["way"]](order)), sys.stdout)


if __name__ == "__main__":
    main()
