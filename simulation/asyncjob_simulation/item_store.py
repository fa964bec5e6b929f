"""The store that results of items go to, in memory, and what goes wrong with requests to it.

Stands in for the drivers and threads of `object_store`: a request takes effect at a moment of the
simulation, and whoever has sent it may be gone by then.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

from asyncjob.offload import Address, Store
from asyncjob.offload.errors import (
    ObjectMissingError,
    OffloadError,
    StoreForbiddenError,
    StoreUnavailableError,
)
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.dice import FaultChooser
from asyncjob_simulation.event_loop import SimulationLoop
from asyncjob_simulation.processes import Process, current_process
from asyncjob_simulation.story import Recorder
from asyncjob_worker.settings import OffloadSettings

T = TypeVar("T")

ROOT: Final = Address.folder("s3://bucket/jobs")
RESULTS: Final = ROOT.join("results", NAMESPACE)
"""Where results of the namespace go. No driver ever sees the address."""

_TIMEOUT_SECONDS: Final = 10.0
_KINDS: Final = ("fails", "lost", "late", "slow", "forbidden", "killed")
_RATES: Final = (0.1, 0.5)
"""Kinds of faults of one request, and how often each comes: there are few requests in a seed."""

_KIND_CHANCES: Final = (0.2, 0.6, 0.9)
"""How likely a kind of fault is to be in a seed at all."""

_LATE_SECONDS: Final = 25.0
"""How much later than its loss a request takes effect at most, as at the API server."""

_SLOW_SECONDS: Final = 15.0
"""How long a slow request takes at most: longer than its client waits, sometimes."""

_OUTAGE_CHANCE: Final = 0.35
_OUTAGES: Final = 3
_OUTAGE_SECONDS: Final = (3.0, 20.0, 70.0, 150.0)
"""A chunk waits for its store for a minute."""

_OUTAGES_BEGIN: Final = 120.0
_REFUSING_SHARE: Final = 0.5
"""In how many outages the store refuses what it is asked, and in the others does not answer well: a
worker takes it at its word the sooner."""

_KILL_CALLBACKS: Final = 12
_KILL_SECONDS: Final = 1.5
"""How long after a request has taken effect who sent it may be killed: the checkpoint that tells of
it is written within about a second."""


class MemoryStore(Store):
    """Objects in memory, by their addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.objects: dict[str, bytes] = {}

    def write(self, address: Address, data: bytes, root: Address) -> None:
        """Write an object whole, in place of one of that address."""
        assert address.is_below(root)
        self.objects[str(address)] = data

    def read(
        self,
        address: Address,
        roots: Sequence[Address],  # noqa: ARG002  # as the real one
        *,
        limit: int | None = None,  # noqa: ARG002
    ) -> bytes:
        """Return an object's content; raises ObjectMissingError."""
        if str(address) not in self.objects:
            raise ObjectMissingError(f"there is no {address}")
        return self.objects[str(address)]

    def names(self, address: Address, roots: Sequence[Address]) -> list[str]:  # noqa: ARG002
        """Return the names of what is in a folder; nothing if there is no such folder."""
        folder = f"{address}/"
        below = (one.removeprefix(folder) for one in self.objects if one.startswith(folder))
        return list(dict.fromkeys(one.partition("/")[0] for one in below))


@dataclass(frozen=True, slots=True)
class SimulatedOffload(OffloadSettings):
    """Settings of workers whose store is in memory."""

    in_memory: MemoryStore = field(kw_only=True, default_factory=MemoryStore)

    def store(self) -> Store:
        """Return that store."""
        return self.in_memory


def offload_to(store: MemoryStore) -> OffloadSettings:
    """Return settings of workers that store results there."""
    return SimulatedOffload(ROOT, timeout=_TIMEOUT_SECONDS, in_memory=store)


@dataclass(frozen=True, slots=True)
class _StoreFault:
    """What becomes of one request. Times are in seconds."""

    arrives: float
    """How long it takes until it has its effect."""

    answered: float
    """How long it takes until there is an answer."""

    error: OffloadError | None = None
    """What is answered; None: what the request comes to."""

    is_lost: bool = False
    """Whether it never has an effect."""


class StoreRequests:
    """All requests of one simulation to its store; stands in for `BoundedThreads`.

    With `is_gentle` nobody is killed for having made one.
    """

    def __init__(
        self,
        loop: SimulationLoop,
        chooser: FaultChooser,
        recorder: Recorder,
        *,
        is_gentle: bool = False,
    ) -> None:
        self._loop = loop
        self._chooser = chooser
        self._recorder = recorder
        self._count = 0
        self._is_faulty = True
        self._away_until = float("-inf")
        self._is_refusing = False
        dice = chooser.dice
        kind_chance = dice.choice("kind chance of the store", _KIND_CHANCES)
        self._rates = {
            kind: dice.between(f"rate of store {kind}", *_RATES)
            for kind in _KINDS
            if dice.happens(f"kind store {kind}", kind_chance)
        }
        if is_gentle:
            self._rates.pop("killed", None)
        if dice.happens("kind store outage", _OUTAGE_CHANCE):
            for number in range(dice.number("store outages", 1, _OUTAGES)):
                at = dice.between(f"store outage {number} at", 0.0, _OUTAGES_BEGIN)
                loop.call_later(at, self._go_away, f"store outage {number}", context=Context())

    def recover(self) -> None:
        """Have nothing go wrong any more."""
        self._is_faulty, self._away_until = False, float("-inf")

    async def run(self, call: Callable[[], T], *, seconds: float) -> T:
        """Carry a request out; raises what it raises, OffloadError, and TimeoutError."""
        process = current_process()
        assert process is not None  # only workers use a store
        self._count += 1
        name = f"store {self._count} of {process.name}"
        answer: asyncio.Future[Any] = self._loop.create_future()
        fault, later = self._judge(name), partial(self._loop.call_later, context=Context())
        if not fault.is_lost:
            later(fault.arrives, self._take_effect, name, call, process, answer, fault)
        later(fault.arrives, self._maybe_kill, name, process)
        if fault.error is not None:
            later(fault.answered, _fail, answer, fault.error)
        async with asyncio.timeout(seconds):
            result: T = await answer
            return result

    def _go_away(self, name: str) -> None:
        if self._is_faulty and self._chooser.wants(name, 1.0, name):
            seconds = self._chooser.dice.choice(f"{name} long", _OUTAGE_SECONDS)
            self._recorder.note("FAULT", f"store away for {seconds} s")
            self._recorder.count("store outage")
            self._away_until = max(self._away_until, self._loop.time() + seconds)
            self._is_refusing = self._chooser.dice.happens(f"{name} refuses", _REFUSING_SHARE)

    def _judge(self, name: str) -> _StoreFault:
        dice = self._chooser.dice
        there, back = dice.between(f"{name}|there", 0.001, 0.03), dice.between(name, 0.001, 0.03)
        usual = _StoreFault(there, there + back)
        if not self._is_faulty:
            return usual
        unavailable = StoreUnavailableError("the store is out of order")
        forbidden = StoreForbiddenError("the store allows nothing")
        if self._loop.time() < self._away_until:
            why = forbidden if self._is_refusing else unavailable
            return _StoreFault(there, there + back, why, is_lost=True)
        for kind, words, fault in (
            ("fails", "fails", _StoreFault(there, there, unavailable, is_lost=True)),
            ("lost", "its answer is lost", _StoreFault(there, there + back, unavailable)),
            (
                "late",
                "takes effect late",
                _StoreFault(dice.between(f"{name}|by", 0.1, _LATE_SECONDS), there, unavailable),
            ),
            ("slow", "slow", self._slow(name)),
            ("forbidden", "403", _StoreFault(there, there, forbidden, is_lost=True)),
        ):
            if self._chooser.wants(f"{name}|{kind}", self._rates.get(kind, 0.0), f"put: {words}"):
                self._recorder.count(f"put {kind}")
                return fault
        return usual

    def _slow(self, name: str) -> _StoreFault:
        dice = self._chooser.dice
        there = dice.between(f"{name}|to", 0.0, _SLOW_SECONDS)
        return _StoreFault(there, there + dice.between(f"{name}|fro", 0.0, _SLOW_SECONDS))

    def _take_effect(
        self,
        name: str,
        call: Callable[[], Any],
        process: Process,
        answer: "asyncio.Future[Any]",
        fault: _StoreFault,
    ) -> None:
        self._recorder.count("put stored")
        self._recorder.note(process.name, f"{name} takes effect")
        try:
            result = call()
        except OffloadError as error:
            answering = partial(_fail, answer, error)
        else:
            answering = partial(_settle, answer, result)
        if fault.error is None:
            back = fault.answered - fault.arrives
            self._loop.call_later(back, answering, context=Context())

    def _maybe_kill(self, name: str, process: Process) -> None:
        """Kill who has stored something, or has not, before or after a checkpoint says so."""
        rate = self._rates.get("killed", 0.0) * self._is_faulty
        if not process.is_alive or not self._chooser.wants(
            f"{name}|killed", rate, "a put, then killed"
        ):
            return
        dice, recorder = self._chooser.dice, self._recorder
        handlers = [child for child in process.children if child.is_alive]
        victim = dice.choice(f"{name}|whom", (process, *handlers[-1:]))
        recorder.count("killed after a put")
        recorder.note("FAULT", f"kills {victim.name} after a put")
        if dice.happens(f"{name}|at once", 0.5):
            victim.kill_after(dice.number(f"{name}|callbacks", 0, _KILL_CALLBACKS))
        else:
            after = dice.between(f"{name}|after", 0.0, _KILL_SECONDS)
            self._loop.call_later(after, victim.kill, context=Context())


def _settle(answer: "asyncio.Future[Any]", result: object) -> None:
    if not answer.done():
        answer.set_result(result)


def _fail(answer: "asyncio.Future[Any]", error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
