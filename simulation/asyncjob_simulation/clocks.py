"""Clocks, chance and threads of the product, replaced while a simulation runs.

Everything that the product reads of the world beside the API server is listed here. Each simulated
process sees its own wall clock; monotonic clocks follow virtual time.
"""

import asyncio
import concurrent.futures
import gc
import logging
import random
import secrets
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime, tzinfo
from typing import Any, Final
from unittest.mock import patch

import structlog

from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob_simulation.event_loop import FIRST_MOMENT, SimulationLoop
from asyncjob_simulation.processes import current_process
from asyncjob_worker.leases.held_job import HeldJob

EPOCH: Final = 1_800_000_000.0
"""2027-01-15T08:00:00Z, when virtual time begins."""

WITH_TIME: Final = ("asyncjob_operator.kube.clock", "asyncjob_worker.clock")
"""Modules whose `time` is replaced."""

WITH_DATETIME: Final = (
    "asyncjob_gateway.clock",
    "asyncjob_operator.kube.clock",
    "asyncjob_worker.clock",
)
"""Modules whose `datetime` is replaced."""


HASHED_BY_ADDRESS: Final[tuple[type, ...]] = (HeldJob, concurrent.futures.Future)
"""Kinds of objects that the product keeps in sets: in the order of where they lie in memory."""


def _numbering() -> Callable[[object], int]:
    """Return a hash that numbers objects in the order in which they are first put into a set."""
    numbers: dict[int, tuple[int, object]] = {}  # keeps them, so that no address is used again

    def number_of(obj: object) -> int:
        return numbers.setdefault(id(obj), (len(numbers), obj))[0]

    return number_of


def true_time(loop: asyncio.AbstractEventLoop) -> float:
    """Return the true time in epoch seconds."""
    return EPOCH + loop.time()


def time_text(seconds: float) -> str:
    """Return the true time so long after the beginning, as it is stored."""
    return format_timestamp(datetime.fromtimestamp(EPOCH + FIRST_MOMENT + seconds, UTC))


def true_moment(loop: asyncio.AbstractEventLoop) -> datetime:
    """Return the true time."""
    return datetime.fromtimestamp(true_time(loop), UTC)


class VirtualTime:
    """Stands in for the module `time`."""

    CLOCK_BOOTTIME: Final = time.CLOCK_BOOTTIME

    def __init__(self, loop: SimulationLoop) -> None:
        self._loop = loop

    def time(self) -> float:
        """Return the wall clock of the process that asks."""
        process = current_process()
        return true_time(self._loop) + (process.wall_offset if process else 0.0)

    def time_ns(self) -> int:
        """Return the same in nanoseconds."""
        return int(self.time() * 1e9)

    def monotonic(self) -> float:
        """Return virtual seconds."""
        return self._loop.time()

    perf_counter = monotonic

    def clock_gettime(self, _clock: int) -> float:
        """Return virtual seconds."""
        return self._loop.time()


def _virtual_datetime(virtual: VirtualTime) -> type[datetime]:
    class VirtualDatetime(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "datetime":  # type: ignore[override]  # a plain one
            return datetime.fromtimestamp(virtual.time(), tz)

    return VirtualDatetime


@contextmanager
def virtual_world(
    loop: SimulationLoop, seed: int, *, on_log: Callable[[str, str], None] | None = None
) -> Iterator[None]:
    """Replace clocks and chance while inside; `on_log` is given level and text of each log line."""
    virtual = VirtualTime(loop)
    chance = random.Random(f"identifiers/{seed}")

    def token_hex(count: int = 16) -> str:
        return chance.getrandbits(8 * count).to_bytes(count, "big").hex()

    def uuid4() -> uuid.UUID:
        return uuid.UUID(int=chance.getrandbits(128), version=4)

    with ExitStack() as stack:
        for name in WITH_TIME:
            stack.enter_context(patch.object(sys.modules[name], "time", virtual))
        for name in WITH_DATETIME:
            replaced = _virtual_datetime(virtual)
            stack.enter_context(patch.object(sys.modules[name], "datetime", replaced))
        operator = sys.modules["asyncjob_operator.operator"]
        stack.enter_context(patch.object(operator, "freeze_gc", nullcontext))
        stack.enter_context(patch.object(secrets, "token_hex", token_hex))
        stack.enter_context(patch.object(uuid, "uuid4", uuid4))
        for kind in HASHED_BY_ADDRESS:
            stack.enter_context(patch.object(kind, "__hash__", _numbering()))
        state = random.getstate()
        stack.callback(random.setstate, state)
        random.seed(f"product/{seed}")
        stack.enter_context(quiet(on_log))
        stack.enter_context(_no_garbage_collection())
        yield


@contextmanager
def quiet(on_log: Callable[[str, str], None] | None = None) -> Iterator[None]:
    """Hand each line of logs on, or write none."""

    def take(_logger: object, level: str, event: Any) -> Any:
        if on_log is not None:
            words = event.pop("event", "")
            error = event.pop("exc_info", None)
            said = [f"{key}={event[key]}" for key in event]
            if error:
                said.append(repr(error if isinstance(error, BaseException) else sys.exc_info()[1]))
            on_log(level, " ".join([str(words), *said]))
        raise structlog.DropEvent

    before = structlog.get_config()
    level = logging.NOTSET if on_log is not None else logging.CRITICAL
    structlog.configure(
        processors=[take],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=False,
    )
    # The body of a step that died with its process never leaves its span.
    spans = patch.object(logging.getLogger("opentelemetry.context"), "disabled", new=True)
    try:
        with spans:
            yield
    finally:
        structlog.configure(**before)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Collect between simulations only: when the collector runs is no part of a seed."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
