"""How long the event loop of a process under test is held, and how much memory it took.

Held is what one turn of the loop costs in CPU time of its thread, so that a busy machine does not
count. `LOOP_WATCH` names the file that is written whenever it is longer than ever before.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession

TICK_SECONDS = 0.002

_tasks: list[asyncio.Task[None]] = []
_init = KubeSession.__init__
_pages = KubeSession.pages


def watch_loop() -> None:
    """Measure the event loop in which this process opens its first session, from then on."""

    def opened(self: KubeSession, *arguments: Any, **options: Any) -> None:
        _init(self, *arguments, **options)
        if not _tasks:
            _tasks.append(asyncio.get_running_loop().create_task(_measure()))

    async def listed(
        self: KubeSession, path: str, params: Any = None, **options: Any
    ) -> AsyncIterator[JsonObject]:
        async for page in _pages(self, path, params, **options):
            yield page
        with _lists(Path(os.environ["LOOP_WATCH"])).open("a") as file:
            file.write(f"{path}\n")

    KubeSession.pages = listed  # type: ignore[method-assign]  # where every list passes
    KubeSession.__init__ = opened  # type: ignore[method-assign]  # where every process passes


async def _measure() -> None:
    file, longest = Path(os.environ["LOOP_WATCH"]), 0.0
    while True:
        before = time.thread_time()
        await asyncio.sleep(TICK_SECONDS)
        held = time.thread_time() - before
        if held > longest:
            longest = held
            file.write_text(str(longest))  # noqa: ASYNC240  # its time is not counted


def held(file: Path) -> float:
    """Return the longest time so far, in seconds."""
    text = file.read_text() if file.exists() else ""
    return float(text or 0.0)


def times_listed(file: Path, kind: str) -> int:
    """Return how many lists of a kind have been read to their end."""
    lists = _lists(file)
    text = lists.read_text() if lists.exists() else ""
    return sum(path.endswith(f"/{kind}") for path in text.splitlines())


def _lists(file: Path) -> Path:
    return file.with_suffix(".lists")


def peak_mib(pid: int) -> float:
    """Return the most memory that a process has had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"process {pid} is gone")
