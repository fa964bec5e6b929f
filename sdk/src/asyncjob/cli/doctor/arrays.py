"""Whether arrays go on: whether their items have a handler, and whether chunks of them run. Pure.

What an array submits are jobs of its own types, so what holds those back is found here, once for
each array and not once for each chunk.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from asyncjob.cli.doctor.findings import DoctorCode, Finding, join_some, ok, problem, warning
from asyncjob.cli.durations import human_duration, parse_time
from asyncjob.lifecycle.arrays.chunks import chunk_type, is_chunk_type
from asyncjob.lifecycle.arrays.phases import ArrayPhase, ArrayReason
from asyncjob.rest.arrays import ArrayInfo
from asyncjob.rest.jobs import JobSummary

ARRAYS_CHECK: Final = "Arrays"

MAX_IDLE_SECONDS: Final = 120.0
"""The operator creates the first chunks of an array within seconds."""

_WAITS: Final = frozenset({ArrayReason.NOT_BEFORE, ArrayReason.WAITING_FOR_DEPENDENCY})
"""Reasons for which an array has no chunk because its author wants it so."""


def is_chunk(job: JobSummary) -> bool:
    """Return whether an array has created the job: no other may have such a type."""
    return is_chunk_type(job.type)


def check_arrays(
    arrays: Sequence[ArrayInfo],
    types_by_queue: Mapping[str, set[str]],
    now: datetime,
    *,
    complete: bool = True,
) -> list[Finding]:
    """Return which arrays do not go on, and which have failed; `now` is the API server's.

    `types_by_queue` has what the live workers of each queue take, and no queue without any.
    `complete` says that these are all arrays, not the newest of them.
    """
    going = [one for one in arrays if not one.finished and not one.suspended]
    unserved = list(_without_handler(going, types_by_queue))
    left = [one for one in going if not any(one in arrays for _, arrays in unserved)]
    found = [_no_handler(key, those) for key, those in unserved]
    found += [*_idle(left, now), *_failed(arrays)]
    if found or not arrays:
        return found
    number = f"{len(going)}" if complete else f"{len(going)} of the newest {len(arrays)}"
    return [ok(ARRAYS_CHECK, f"{number} under way, none stands still and none has failed")]


def _without_handler(
    going: Sequence[ArrayInfo], types_by_queue: Mapping[str, set[str]]
) -> Iterator[tuple[tuple[str, str], list[ArrayInfo]]]:
    """Yield queue and type of arrays whose queue has workers, none of which takes their items."""
    lost: dict[tuple[str, str], list[ArrayInfo]] = {}
    for array in going:
        served = types_by_queue.get(array.queue)
        chunks = chunk_type(array.type, has_results=bool(array.results))
        if served is not None and chunks not in served:
            lost.setdefault((array.queue, chunks), []).append(array)
    yield from sorted(lost.items(), key=lambda entry: entry[0])


def _no_handler(key: tuple[str, str], arrays: Sequence[ArrayInfo]) -> Finding:
    queue, chunks = key
    kind = chunks.rpartition("/")[0]
    if chunks == chunk_type(kind, has_results=True):
        return _no_results(queue, kind, arrays)
    names = join_some((one.name for one in arrays), 3)
    message = f"no live worker of queue {queue} has an item handler for {kind}: {names}"
    way = f'deploy one: @app.item_handler("{kind}"); or cancel the array'
    return problem(ARRAYS_CHECK, DoctorCode.NO_ITEM_HANDLER, message, way)


def _no_results(queue: str, kind: str, arrays: Sequence[ArrayInfo]) -> Finding:
    names = join_some((one.name for one in arrays), 3)
    message = (
        f"no live worker of queue {queue} has an item handler for {kind} that stores results: "
        f"{names}"
    )
    way = f'deploy one: @app.item_handler("{kind}"), with a worker of this version; or cancel it'
    return problem(ARRAYS_CHECK, DoctorCode.NO_ITEM_HANDLER, message, way)


def _idle(going: Sequence[ArrayInfo], now: datetime) -> Iterator[Finding]:
    """Yield that arrays have no chunk although they have been there for minutes."""
    idle = {
        one.name: age
        for one in going
        if not one.open_chunks
        and one.reason not in _WAITS
        and (age := _age(one, now)) > MAX_IDLE_SECONDS
    }
    if idle:
        worst = human_duration(max(idle.values()))
        number = f"{len(idle)} have no chunk under way"
        message = f"{number} (the oldest is {worst} old): {join_some(idle, 3)}"
        way = "kubectl describe asyncarray NAME: a quota may refuse its jobs; or no operator leads"
        yield problem(ARRAYS_CHECK, DoctorCode.ARRAY_IDLE, message, way)


def _age(array: ArrayInfo, now: datetime) -> float:
    created = parse_time(array.started_at or array.created_at)
    return (now - created).total_seconds() if created else 0.0


def _failed(arrays: Sequence[ArrayInfo]) -> Iterator[Finding]:
    failed = [one for one in arrays if one.finished and one.phase is ArrayPhase.FAILED]
    if failed:
        names = join_some((f"{one.name} ({one.reason})" for one in failed), 3)
        waits = "has failed and waits" if len(failed) == 1 else "have failed and wait"
        message = f"{len(failed)} {waits} for a person: {names}"
        way = "asyncjob array items NAME --failed, then asyncjob array redrive NAME, or delete it"
        yield warning(ARRAYS_CHECK, DoctorCode.ARRAYS_FAILED, message, way)
