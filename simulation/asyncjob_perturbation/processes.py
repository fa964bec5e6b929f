"""The parts as processes that are killed and started again, as a kubelet would.

All are forked by one process that has imported them: to import them takes longer than most cases.
"""

import asyncio
import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Final

import aiohttp

import asyncjob_gateway.cli
import asyncjob_gateway.server
import asyncjob_operator.cli
import asyncjob_operator.process
import asyncjob_worker.cli
import asyncjob_worker.worker
from asyncjob_perturbation.plan import Part

BUG: Final = "PERTURBATION_BUG"
"""Names the environment variable with the bug to plant, for tests of the perturbation itself."""

_LOOK_SECONDS: Final = 0.02
_RESTART_SECONDS: Final = 0.1
_READY_SECONDS: Final = 60.0
_PR_SET_PDEATHSIG: Final = 1


_COMMANDS: Final = {
    Part.OPERATOR: asyncjob_operator.cli.main,
    Part.WORKER: asyncjob_worker.cli.main,
    Part.GATEWAY: asyncjob_gateway.cli.main,
}

_context = multiprocessing.get_context("forkserver")


def prepare() -> None:
    """Have the process that forks import everything."""
    _context.set_forkserver_preload(
        [__name__, "asyncjob_perturbation.handlers", "asyncjob_perturbation.frozen"]
    )


class PartProcess:
    """One part: started, and started again whenever it has ended, until it is stopped."""

    def __init__(
        self,
        part: Part,
        arguments: Sequence[str],
        *,
        ready_url: str,
        log: Path,
        environment: Mapping[str, str],
        on_end: Callable[[int], Awaitable[None]] | None = None,
    ) -> None:
        self.part = part
        self.log = log
        self.kills = 0
        """How often it was killed, or ended by itself."""

        self._arguments = [*arguments]
        self._ready_url = ready_url
        self._environment = dict(environment)
        self._on_end = on_end
        self._process: ForkServerProcess | None = None
        self._keeping: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start it, and again whenever it has ended."""
        self._fork()
        self._keeping = asyncio.create_task(self._keep())

    def kill(self) -> None:
        """SIGKILL: nothing of it runs any more when this returns."""
        if self._process:
            self._process.kill()  # which does nothing if it has ended: its pid may be another's

    async def until_ready(self) -> None:
        """Wait until it says that it is ready."""
        async with asyncio.timeout(_READY_SECONDS), aiohttp.ClientSession() as session:
            await _until(partial(_is_ready, session, self._ready_url))

    async def stop(self) -> None:
        """End it for good."""
        if self._keeping:
            self._keeping.cancel()
        self.kill()
        await _until(self._has_ended)

    def words(self) -> str:
        """Return what it has written so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    async def _has_ended(self) -> bool:
        return self._process is None or not self._process.is_alive()

    async def _keep(self) -> None:
        while True:
            await _until(self._has_ended)
            self.kills += 1
            if self._on_end:
                await self._on_end(self.kills)
            await asyncio.sleep(_RESTART_SECONDS)
            self._fork()

    def _fork(self) -> None:
        self._process = _context.Process(
            target=_run,
            args=(self.part, self._arguments, str(self.log), self._environment),
            daemon=True,
        )
        self._process.start()


async def _until(met: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what another process does, of which nothing tells."""
    while not await met():  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_SECONDS)


async def _is_ready(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as answer:
            return answer.status == 200  # noqa: PLR2004  # OK
    except aiohttp.ClientError:
        return False


def _run(part: Part, arguments: list[str], log: str, environment: dict[str, str]) -> None:
    """Become the part: what its console script does, with its output in a file."""
    end_with_parent()
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.update(environment)
    sys.argv = [f"asyncjob-{part}", *arguments]
    with _planted(environment.get(BUG, "")):
        _COMMANDS[part]()


def end_with_parent() -> None:
    """Have the kernel kill this process when the thread ends that has made it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _planted(name: str) -> AbstractContextManager[object]:
    """Plant a bug in this process, if one is named."""
    if not name:
        return nullcontext()
    from asyncjob_perturbation.planted import plant

    return plant(name)
