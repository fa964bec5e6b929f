"""Bugs planted in what keeps steps, parks jobs, and wakes them."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from asyncjob.lifecycle import phase_change
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.policies import gates
from asyncjob_simulation.planting import mutation
from asyncjob_simulation.processes import current_process
from asyncjob_simulation.profiles import Profile
from asyncjob_worker.execution import attempt
from asyncjob_worker.execution.attempt_waits import AttemptWaits
from asyncjob_worker.leases.step_writer import StepWriter


async def _yes(*_: object, **__: object) -> bool:
    return True


# ---- steps


@mutation("a step is taken again although its result is stored", profile=Profile.WAITS)
def step_taken_again() -> AbstractContextManager[object]:
    return patch.object(attempt, "steps_of", lambda _: {})


@mutation("a step whose write has failed counts as stored", profile=Profile.WAITS)
def step_hoped_for() -> AbstractContextManager[object]:
    return patch.object(StepWriter, "_after_error", _yes)


# ---- parks


@mutation("a park is counted as a retry", profile=Profile.WAITS)
def park_as_retry() -> AbstractContextManager[object]:
    park = phase_change.park

    def counted(job: Any, *args: Any, **more: Any) -> Any:
        change = park(job, *args, **more)
        return replace(change, fields={**change.fields, "retries": job.retries + 1})

    return patch.object(phase_change, "park", counted)


@mutation("a parked job is woken at the first look", profile=Profile.WAITS)
def woken_unseen() -> AbstractContextManager[object]:
    return patch.object(gates, "_wake", gates._queue_job)


@mutation("a parked job is woken by the clock of the machine that leads", profile=Profile.WAITS)
def woken_by_own_clock() -> AbstractContextManager[object]:
    return patch.object(Now, "server_wall", property(lambda self: self.wall))


# ---- signals


@mutation(
    "a signal that comes while the park is written wakes nobody: only its event would",
    profile=Profile.WAITS,
)
def signal_by_event() -> AbstractContextManager[object]:
    wake, first_seen = gates._wake, dict[tuple[str, str, int], frozenset[str]]()

    def news(snapshot: Any, now: Any) -> Any:
        job, process = snapshot.job, current_process()
        place = (process.name if process else "", job.uid, job.parks)
        sent = frozenset(one.key for one in job.waiting if one.sent)
        known = first_seen.setdefault(place, sent)
        waiting = tuple(replace(one, sent=one.sent and one.key not in known) for one in job.waiting)
        return wake(replace(snapshot, job=replace(job, waiting=waiting)), now)

    return patch.object(gates, "_wake", news)


@mutation("that a signal has timed out is not stored: a late one is taken", profile=Profile.WAITS)
def late_signal_taken() -> AbstractContextManager[object]:
    @contextmanager
    def both() -> Iterator[None]:
        with (
            patch.object(AttemptWaits, "_time_out", _yes),
            patch.object(
                gates, "promote", lambda job, *, now, **_: phase_change.promote(job, now=now)
            ),
        ):
            yield

    return both()


@mutation("a signal that comes as its time ends is taken for late", profile=Profile.WAITS)
def timed_out_though_there() -> AbstractContextManager[object]:
    return patch.object(gates, "_ends_by_time", lambda one: bool(one.until))
