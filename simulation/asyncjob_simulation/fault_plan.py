"""Which faults a seed has: how often requests go wrong, and what befalls processes, and when.

Each seed has some kinds of faults only, each more or less often: one kind may hide another.
"""

from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from typing import Final

from asyncjob_simulation.actors import HEARTBEAT
from asyncjob_simulation.cluster import Cluster, Replica
from asyncjob_simulation.dice import Dice
from asyncjob_simulation.network import Rates
from asyncjob_simulation.processes import MAIN, Process

_KIND_CHANCE: Final = 0.45
"""How likely a kind of fault is to be in a seed at all."""

_EVENT_CHANCE: Final = 0.7
_SOON_SECONDS: Final = 10.0
"""How long a fault waits for the next change that its victim makes."""

_HIGHEST: Final = {
    "lost_before": 0.2,
    "lost_after": 0.3,
    "late": 0.15,
    "slow": 0.2,
    "unavailable": 0.2,
    "throttled": 0.3,
    "timed_out_after": 0.15,
    "refused": 0.02,
    "watch_cut": 0.05,
    "watch_expired": 0.03,
    "watch_slow": 0.2,
    "watch_dropped": 0.02,
}
"""The highest rate of each kind."""

GENTLE_SPACING: Final = 2.0
"""Where answers may cost no attempt, a process has no more than one fault in so many seconds."""


def rates_of(dice: Dice, *, is_gentle: bool) -> Rates:
    """Return how often requests go wrong; gently, so that no job may lose an attempt by it."""
    rates = {kind: _rate(dice, kind, highest) for kind, highest in _HIGHEST.items()}
    if is_gentle:
        rates.update(slow=0.0, watch_dropped=0.0, spacing=GENTLE_SPACING)
        return Rates(silent=dice.choice("silent", (0.0, 0.5)), **rates)
    return Rates(silent=dice.choice("silent", (0.0, 0.2, 0.5)), **rates)


def _rate(dice: Dice, kind: str, highest: float) -> float:
    if not dice.happens(f"kind {kind}", _KIND_CHANCE):
        return 0.0
    return highest * float(dice.fraction(f"rate of {kind}") ** 2)


@dataclass
class FaultPlan:
    """What befalls the processes of one simulation."""

    cluster: Cluster
    dice: Dice
    operators: Sequence[Replica]
    workers: Sequence[Replica]
    gateway: Replica

    def plan(self, seconds: float) -> None:
        """Have faults happen within so many seconds."""
        kinds: dict[str, tuple[int, Callable[[str], None]]] = {
            "kill": (8, self._kill),
            "hold": (6, self._hold),
            "block": (6, self._block),
            "evict": (4, self._evict),
            "lose node": (2, self._lose_node),
            "cut": (8, self._cut),
            "outage": (2, self._outage),
            "stall": (5, self._stall),
            "compact": (4, self._compact),
            "clock": (6, self._step_clock),
            "roll": (1, self._roll),
        }
        for kind, (most, cause) in kinds.items():
            if not self.dice.happens(f"kind {kind}", _KIND_CHANCE):
                continue
            for number in range(most):
                name = f"{kind} {number}"
                at = self.dice.between(f"{name} at", 0.5, seconds)
                self._later(at, self._cause, name, cause)

    def _cause(self, name: str, cause: Callable[[str], None]) -> None:
        if self.cluster.network.chooser.wants(name, _EVENT_CHANCE, name):
            self.cluster.recorder.count(name.rsplit(" ", 1)[0])
            cause(name)

    def _victim(self, name: str, replicas: Sequence[Replica]) -> Process | None:
        running = [replica.process for replica in replicas if replica.process]
        return self.dice.choice(f"{name} whom", running) if running else None

    def _all(self) -> list[Replica]:
        return [*self.workers, *self.operators, self.gateway]

    def _kill(self, name: str) -> None:
        process = self._victim(name, self._all())
        if process is not None:
            after = self.dice.number(f"{name} after", 0, 60)
            self.cluster.recorder.note(
                "FAULT", f"kills {process.name} after {after} more callbacks"
            )
            self._soon(name, process, partial(process.kill_after, after))
            self._later(_SOON_SECONDS + 0.5, process.kill)

    def _hold(self, name: str) -> None:
        process = self._victim(name, [*self.workers, *self.operators])
        if process is not None and process.held_since is None:
            seconds = self.dice.choice(f"{name} long", (0.6, 4.0, 8.0, 12.0, 20.0, 40.0))
            self.cluster.recorder.note("FAULT", f"stops {process.name} for {seconds} s")

            def hold() -> None:
                process.hold()
                self._later(seconds, process.release)

            self._soon(name, process, hold)

    def _block(self, name: str) -> None:
        process = self._victim(name, self.workers)
        if process is not None:
            thread = self.dice.choice(f"{name} thread", (MAIN, HEARTBEAT))
            seconds = self.dice.choice(f"{name} long", (0.5, 2.0, 4.0, 8.0, 20.0))
            self.cluster.recorder.note("FAULT", f"blocks {process.name}, {thread}, for {seconds} s")
            self._soon(name, process, partial(process.block, seconds, thread))

    def _evict(self, name: str) -> None:
        replica = self.dice.choice(f"{name} whom", self._all())
        grace = self.dice.choice(f"{name} grace", (0.5, 10.0, 30.0))
        self.cluster.recorder.note("FAULT", f"evicts {replica.name} with {grace} s")
        self.cluster.evict(replica, grace)

    def _lose_node(self, name: str) -> None:
        replica = self.dice.choice(f"{name} whom", self.workers)
        alive = self.dice.choice(f"{name} alive", (0.0, 30.0, 200.0))
        noticed = self.dice.between(f"{name} noticed", 1.0, 40.0)
        self.cluster.recorder.note("FAULT", f"loses the node of {replica.name}")
        self.cluster.lose_node(replica, stays_alive=alive, noticed_after=noticed)

    def _cut(self, name: str) -> None:
        of_workers = self.dice.happens(f"{name} of workers", 0.7)
        process = self._victim(name, self.workers if of_workers else self._all())
        if process is not None:
            seconds = self.dice.choice(f"{name} long", (3.0, 8.0, 15.0, 25.0, 60.0))
            self.cluster.recorder.note("FAULT", f"cuts {process.name} off for {seconds} s")
            self._soon(name, process, partial(self._cut_off, process, seconds))

    def _cut_off(self, process: Process, seconds: float) -> None:
        until, cut_until = self.cluster.loop.time() + seconds, self.cluster.network.cut_until
        cut_until[process.name] = max(cut_until.get(process.name, 0.0), until)

    def _outage(self, name: str) -> None:
        seconds = self.dice.choice(f"{name} long", (0.5, 3.0, 10.0, 40.0))
        self.cluster.recorder.note("FAULT", f"API server away for {seconds} s")
        self.cluster.network.down_until = max(
            self.cluster.network.down_until, self.cluster.loop.time() + seconds
        )

    def _stall(self, name: str) -> None:
        of_operators = self.dice.happens(f"{name} of operators", 0.5)
        process = self._victim(name, self.operators if of_operators else self._all())
        if process is not None:
            what = self.dice.choice(f"{name} what", ("asyncjobs", "asyncqueues", "leases", "pods"))
            seconds = self.dice.choice(f"{name} long", (2.0, 6.0, 12.0, 25.0))
            self.cluster.recorder.note(
                "FAULT", f"no events of {what} for {process.name}, {seconds} s"
            )
            self.cluster.network.stalled_until[process.name, what] = (
                self.cluster.loop.time() + seconds
            )

    def _compact(self, _: str) -> None:
        self.cluster.recorder.note("FAULT", "old versions are forgotten")
        self.cluster.network.server.storage.compact()

    def _step_clock(self, name: str) -> None:
        of_workers = self.dice.happens(f"{name} of workers", 0.7)
        process = self._victim(name, self.workers if of_workers else self._all())
        if process is not None:
            seconds = self.dice.choice(f"{name} by", (-3600.0, -60.0, -10.0, 10.0, 60.0, 3600.0))
            self.cluster.recorder.note(
                "FAULT", f"sets the clock of {process.name} by {seconds:+} s"
            )
            process.wall_offset += seconds

    def _roll(self, _: str) -> None:
        self.cluster.recorder.note("FAULT", "rolls all workers")
        for number, replica in enumerate(self.workers):
            self._later(number * 2.0, self.cluster.evict, replica, 30.0)

    def _soon(self, name: str, process: Process, befall: Callable[[], object]) -> None:
        """Have something befall a process now, or once its next change of a job is stored.

        Just after a change, before its answer is there, is when most can go wrong.
        """
        if self.dice.happens(f"{name} now", 0.5):
            befall()
            return
        self.cluster.network.after_write[process.name] = befall
        self._later(_SOON_SECONDS, self._give_up, process, befall)

    def _give_up(self, process: Process, befall: Callable[[], object]) -> None:
        after_write = self.cluster.network.after_write
        if after_write.get(process.name) is befall:
            del after_write[process.name]

    def _later(self, seconds: float, function: Callable[..., object], *args: object) -> None:
        self.cluster.loop.call_later(seconds, function, *args, context=Context())
