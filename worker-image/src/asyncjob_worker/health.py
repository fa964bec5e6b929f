"""Whether a worker process lives and whether it is ready: what the probes of its pod ask.

Alive means that a restart would not help. Looks are counted, not seconds, so that a machine that
slept wakes up healthy. A stall of the event loop fails the probe late on purpose: the restart
interrupts all jobs of the process, and an ordinary slow handler ends by itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from asyncjob_worker.keeper import Keeper
from asyncjob_worker.pulse import Pulse, Watchman

LOOK_SECONDS: Final = 1.0
HEARTBEAT_LIMIT: Final = 30
"""Looks without a beat of the heartbeat thread; long before, a running event loop has noticed."""


@dataclass(frozen=True, slots=True)
class Signs:
    """What readiness depends on, at one moment."""

    announced: bool = True
    queue_known: bool = True
    workers_known: bool = True
    jobs_watched: bool = True
    enforcement_in_doubt: bool = False
    draining: bool = False


def unready(signs: Signs) -> str:
    """Return why no jobs are taken just now; empty if they are."""
    checks = (
        (not signs.announced, "not announced: no worker Lease, or no heartbeat thread"),
        (not signs.queue_known, "queue not known: its AsyncQueue has not been listed"),
        (not signs.workers_known, "workers not known: their Leases have not been listed"),
        (not signs.jobs_watched, "jobs not watched: there is no watch of queued jobs"),
        (signs.enforcement_in_doubt, "ownership is not enforced: the policy does not hold yet"),
        (signs.draining, "draining: no more jobs are claimed"),
    )
    return "\n".join(words for wrong, words in checks if wrong)


class Health:
    """Judges one worker process, from a thread that neither of the watched can hold up.

    `stall_limit` in seconds; 0 means that a stall is never a reason to restart.
    """

    def __init__(
        self, loop: Pulse, keeper: Keeper, signs: Callable[[], Signs], *, stall_limit: float
    ) -> None:
        self._loop_pulse = loop
        self._loop = Watchman(loop)
        self._keeper = keeper
        self._heartbeat = Watchman(keeper.pulse)
        self._signs = signs
        self._stall_limit = stall_limit

    def look(self) -> None:
        """Look at both pulses; to be called every LOOK_SECONDS."""
        self._loop.look()
        self._heartbeat.look()

    def not_alive(self) -> str:
        """Return why the process should be restarted; empty if it should not."""
        stalled = self._loop.missed * LOOK_SECONDS if self._loop_pulse.beats else 0.0
        wrong = []
        if self._stall_limit and stalled > self._stall_limit:
            limit = f"the limit is {self._stall_limit:g} s"
            wrong.append(f"event loop: blocked for {stalled:.0f} s, {limit}")
        if self._keeper.alive and self._heartbeat.missed > HEARTBEAT_LIMIT:
            wrong.append(f"heartbeat thread: silent for {self._heartbeat.missed:.0f} s")
        return "\n".join(wrong)

    def not_ready(self) -> str:
        """Return why no jobs are taken just now; empty if they are."""
        return unready(self._signs())
