"""Whether a worker process lives and whether it is ready: what the probes of its pod ask.

Alive means that a restart would not help. Looks are counted, not seconds, so that a machine that
slept wakes up healthy. A stall of the event loop fails the probe late on purpose: the restart
interrupts all jobs of the process, and an ordinary slow handler ends by itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from asyncjob_worker.keeper import HeartbeatThread
from asyncjob_worker.pulse import LivenessCounter, Watchdog

CHECK_SECONDS: Final = 1.0
MAX_MISSED_HEARTBEATS: Final = 30
"""Looks without a beat of the heartbeat thread; long before, a running event loop has noticed."""


@dataclass(frozen=True, slots=True)
class ReadinessState:
    """What readiness depends on, at one moment."""

    registered: bool = True
    queue_known: bool = True
    workers_known: bool = True
    watching_jobs: bool = True
    enforcement_unproven: bool = False
    draining: bool = False


def unready_reasons(state: ReadinessState) -> str:
    """Return why no jobs are taken just now; empty if they are."""
    checks = (
        (not state.registered, "not announced: no worker Lease, or no heartbeat thread"),
        (not state.queue_known, "queue not known: its AsyncQueue has not been listed"),
        (not state.workers_known, "workers not known: their Leases have not been listed"),
        (not state.watching_jobs, "jobs not watched: there is no watch of queued jobs"),
        (state.enforcement_unproven, "ownership is not enforced: the policy does not hold yet"),
        (state.draining, "draining: no more jobs are claimed"),
    )
    return "\n".join(words for wrong, words in checks if wrong)


class Health:
    """Judges one worker process, from a thread that neither of the watched can hold up.

    `stall_limit` in seconds; 0 means that a stall is never a reason to restart.
    """

    def __init__(
        self,
        loop_liveness: LivenessCounter,
        heartbeat: HeartbeatThread,
        readiness: Callable[[], ReadinessState],
        *,
        stall_limit: float,
    ) -> None:
        self._loop_liveness = loop_liveness
        self._loop_watchdog = Watchdog(loop_liveness)
        self._heartbeat = heartbeat
        self._heartbeat_watchdog = Watchdog(heartbeat.liveness)
        self._readiness = readiness
        self._stall_limit = stall_limit

    def check(self) -> None:
        """Look at both pulses; to be called every LOOK_SECONDS."""
        self._loop_watchdog.check()
        self._heartbeat_watchdog.check()

    def not_alive(self) -> str:
        """Return why the process should be restarted; empty if it should not."""
        stalled = self._loop_watchdog.missed * CHECK_SECONDS if self._loop_liveness.ticks else 0.0
        wrong = []
        if self._stall_limit and stalled > self._stall_limit:
            limit = f"the limit is {self._stall_limit:g} s"
            wrong.append(f"event loop: blocked for {stalled:.0f} s, {limit}")
        if self._heartbeat.alive and self._heartbeat_watchdog.missed > MAX_MISSED_HEARTBEATS:
            wrong.append(f"heartbeat thread: silent for {self._heartbeat_watchdog.missed:.0f} s")
        return "\n".join(wrong)

    def not_ready(self) -> str:
        """Return why no jobs are taken just now; empty if they are."""
        return unready_reasons(self._readiness())
