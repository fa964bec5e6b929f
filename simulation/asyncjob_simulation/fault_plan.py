"""What befalls the processes of one seed, and when."""

from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from typing import Final

from asyncjob_simulation.cluster import Cluster, Replica
from asyncjob_simulation.dice import Dice
from asyncjob_simulation.processes import HEARTBEAT, MAIN, Process
from asyncjob_simulation.swarm import Swarm

_EVENT_CHANCE: Final = 0.7
_SOON_SECONDS: Final = 10.0
"""How long a fault waits for the next change that its victim makes."""

_BLOCKED_SECONDS: Final = {MAIN: (0.5, 2.0, 5.0, 8.0, 9.5, 20.0), HEARTBEAT: (3.0, 9.5, 20.0)}
"""For how long threads are blocked: that of heartbeats is not missed within a third of a lease."""

_SMALL_SHARE: Final = 0.4
"""How many of the usual faults a small life has, which is as much shorter."""

_CRASH_SECONDS: Final = (4.0, 16.0)
"""How long a container that crashes again and again lives, its start included."""

_BURST_SECONDS: Final = 6.0
"""How close to each other faults come where they come in bursts."""


_HARMLESS: Final = ("kill", "hold", "cut", "stall", "compact", "clock", "quota")
"""Kinds of faults that need not cost any attempt while workers are spared where it would."""


_GRACES: Final = (0.5, 10.0, 30.0)
_EVICTED_STUBBORN: Final = 0.5
"""How many of the evictions wait for a handler that ignores its stops, where there are some."""


@dataclass
class FaultPlan:
    """What befalls the processes of one simulation."""

    cluster: Cluster
    dice: Dice
    swarm: Swarm
    operators: Sequence[Replica]
    workers: Sequence[Replica]
    gateway: Replica
    busy: Callable[[], Sequence[Process]]
    """Returns the processes of workers that run handlers."""

    after_stubborn: list[Callable[[Process], None]]
    """What happens once the next handler begins that ignores its stops, to its container."""

    watched: Sequence[str] = ()
    """What is watched, and so may be late, besides what all simulations have."""

    def plan(self, seconds: float) -> None:
        """Have faults happen within so many seconds."""
        kinds = self._kinds()
        if self.swarm.is_gentle:
            kinds = {kind: kinds[kind] for kind in _HARMLESS}
        for kind, (usually, cause) in kinds.items():
            if not self.dice.happens(f"kind {kind}", self.swarm.kind_chance):
                continue
            share = _SMALL_SHARE if self.swarm.is_small else 1.0
            for number in range(max(1, round(usually * share * self.swarm.vigour))):
                name = f"{kind} {number}"
                self._later(self._moment(name, seconds), self._cause, name, cause)

    def _moment(self, name: str, seconds: float) -> float:
        """Return when a fault is to come."""
        at = self.dice.between(f"{name} at", 0.5, seconds)
        if not self.swarm.bursts:
            return at
        burst = self.dice.number(f"{name} burst", 1, self.swarm.bursts)
        since = self.dice.between(f"{name} in burst", 0.0, _BURST_SECONDS)
        return self.dice.between(f"burst {burst}", 0.5, seconds) + since

    def _kinds(self) -> dict[str, tuple[int, Callable[[str], None]]]:
        """Return how many faults of each kind there are usually, and what causes one."""
        return {
            "kill": (8, self._kill),
            "hold": (6, self._hold),
            "block": (6, self._block),
            "starve": (4, self._starve),
            "evict": (4, self._evict),
            "lose node": (2, self._lose_node),
            "cut": (8, self._cut),
            "outage": (2, self._outage),
            "stall": (5, self._stall),
            "compact": (4, self._compact),
            "clock": (6, self._step_clock),
            "roll": (1, self._roll),
            "quota": (2, self._exceed_quota),
        }

    def _cause(self, name: str, cause: Callable[[str], None]) -> None:
        if self.cluster.network.chooser.wants(name, _EVENT_CHANCE, name):
            self.cluster.recorder.count(name.rsplit(" ", 1)[0])
            cause(name)

    def _victim(
        self, name: str, replicas: Sequence[Replica], *, at_work: bool = False
    ) -> Process | None:
        """Return whom a fault befalls, with `at_work` one that runs handlers if there is one."""
        running = [replica.process for replica in replicas if replica.process]
        picked_on = self.dice.choice("picked on", self._all()).process
        if (
            picked_on in running
            and not at_work
            and self.dice.happens(f"{name} again", self.swarm.one_victim)
        ):
            return picked_on
        if at_work or self.dice.happens(f"{name} one at work", self.swarm.at_work):
            running = [process for process in running if process in self.busy()] or running
        return self.dice.choice(f"{name} whom", running) if running else None

    def _some(self) -> Sequence[Replica]:
        """Return workers; where they are to be spared, the others."""
        return self._others() if self.swarm.is_gentle else self.workers

    def _others(self) -> list[Replica]:
        return [*self.operators, self.gateway]

    def _all(self) -> list[Replica]:
        """Return all that may be befallen."""
        others = self._others()
        return others if self.swarm.is_gentle else [*self.workers, *others]

    def _kill(self, name: str) -> None:
        process = self._victim(name, self._all())
        if process is None:
            return
        after = self.dice.number(f"{name} after", 0, 60)
        self.cluster.recorder.note("FAULT", f"kills {process.name} after {after} more callbacks")
        self._soon(name, process, partial(process.kill_after, after))
        self._later(_SOON_SECONDS + 0.5, process.kill)
        replica = next(one for one in self._all() if one.process is process)
        ended_by = _SOON_SECONDS
        for number in range(1, self.dice.choice(f"{name} crashes", self.swarm.crashes)):
            ended_by += self.dice.between(f"{name} crash {number}", *_CRASH_SECONDS)
            self._later(ended_by, self._crash, replica)

    def _crash(self, replica: Replica) -> None:
        """Kill what runs there now: the container that was started after the end of another."""
        if replica.process is not None:
            self.cluster.recorder.note("FAULT", f"kills {replica.process.name}")
            replica.process.kill()

    def _hold(self, name: str) -> None:
        process = self._victim(name, self._all())
        if process is not None and process.held_since is None:
            seconds = self.dice.choice(f"{name} long", (0.6, 4.0, 8.0, 12.0, 20.0, 40.0))
            self.cluster.recorder.note("FAULT", f"stops {process.name} for {seconds} s")

            def hold() -> None:
                process.hold()
                self._later(seconds, process.release)

            self._soon(name, process, hold)

    def _block(self, name: str) -> None:
        thread = self.dice.choice(f"{name} thread", (MAIN, HEARTBEAT))
        # That the thread of heartbeats hangs shows only while there are leases to renew.
        process = self._victim(name, self.workers, at_work=thread == HEARTBEAT)
        if process is not None:
            seconds = self.dice.choice(f"{name} long", _BLOCKED_SECONDS[thread])
            self.cluster.recorder.note("FAULT", f"blocks {process.name}, {thread}, for {seconds} s")
            if thread == HEARTBEAT:
                process.block(seconds, thread)
            else:
                self._soon(name, process, partial(process.block, seconds, thread))

    def _starve(self, name: str) -> None:
        """Have a machine give a worker neither its event loop a turn nor the network an answer."""
        process = self._victim(name, self.workers)
        if process is not None:
            seconds = self.dice.choice(f"{name} long", (3.0, 9.0, 14.0))
            self.cluster.recorder.note("FAULT", f"starves {process.name} for {seconds} s")
            process.block(seconds)
            self._cut_off(process, seconds - self.dice.between(f"{name} sooner", 0.0, 2.0))

    def _evict(self, name: str) -> None:
        """Evict somebody, maybe a worker as soon as one of its handlers ignores its stops."""
        if self.swarm.stubborn and self.dice.happens(f"{name} one that stays", _EVICTED_STUBBORN):
            self.after_stubborn.append(partial(self._evict_soon, name))
            return
        replica = self.dice.choice(f"{name} whom", self._all())
        self._evict_with(replica, self.dice.choice(f"{name} grace", _GRACES))

    def _evict_soon(self, name: str, container: Process) -> None:
        replica = next((one for one in self.workers if one.process is container), None)
        if replica is not None:
            soon = self.dice.between(f"{name} soon", 0.1, 3.0)
            self._later(soon, self._evict_with, replica, max(_GRACES))

    def _evict_with(self, replica: Replica, grace: float) -> None:
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
        process = self._victim(name, self._some() if of_workers else self._all())
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
        everyone = [*self.workers, *self._others()]
        process = self._victim(name, self.operators if of_operators else everyone)
        if process is not None:
            kinds = ("asyncjobs", "asyncqueues", "leases", "pods", *self.watched)
            what = self.dice.choice(f"{name} what", kinds)
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
        everyone = [*self.workers, *self._others()]
        process = self._victim(name, self.workers if of_workers else everyone)
        if process is not None:
            seconds = self.dice.choice(f"{name} by", (-3600.0, -60.0, -10.0, 10.0, 60.0, 3600.0))
            self.cluster.recorder.note(
                "FAULT", f"sets the clock of {process.name} by {seconds:+} s"
            )
            process.wall_offset += seconds

    def _exceed_quota(self, name: str) -> None:
        seconds = self.dice.choice(f"{name} long", (30.0, 130.0, 200.0))
        self.cluster.recorder.note("FAULT", f"no more jobs of operators for {seconds} s")
        network = self.cluster.network
        until = self.cluster.loop.time() + seconds
        network.quota_exceeded_until = max(network.quota_exceeded_until, until)

    def _roll(self, _: str) -> None:
        self.cluster.recorder.note("FAULT", "rolls all workers")
        for number, replica in enumerate(self.workers):
            self._later(number * 2.0, self.cluster.evict, replica, 30.0)

    def _soon(self, name: str, process: Process, befall: Callable[[], object]) -> None:
        """Have something befall a process now, or when most can go wrong.

        That is once its next change of a job is stored, before its answer is there, or once its
        next request has gone wrong.
        """
        network = self.cluster.network
        when = self.dice.fraction(f"{name} when")
        if when < 0.5:  # noqa: PLR2004  # shares
            befall()
            return
        waiting = network.after_write if when < 0.8 else network.after_fault  # noqa: PLR2004
        waiting[process.name] = befall
        self._later(_SOON_SECONDS, self._give_up, waiting, process.name, befall)

    @staticmethod
    def _give_up(
        waiting: dict[str, Callable[[], object]], name: str, befall: Callable[[], object]
    ) -> None:
        if waiting.get(name) is befall:
            del waiting[name]

    def _later(self, seconds: float, function: Callable[..., object], *args: object) -> None:
        self.cluster.loop.call_later(seconds, function, *args, context=Context())
