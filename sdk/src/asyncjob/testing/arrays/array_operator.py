"""The operator's part in arrays: chunks are reserved, created, counted and deleted.

What becomes of an array is decided by the function that the operator decides with. Here is what the
operator does besides, without what it does because others may act at the same time: nobody else
creates chunks, and no read is stale. Each step writes one version of one object.
"""

from collections.abc import Callable, Mapping

from asyncjob.json_types import JsonObject, child
from asyncjob.lifecycle.arrays.advance import advance, due_control
from asyncjob.lifecycle.arrays.chunk_jobs import (
    array_uid_of,
    chunk_body,
    read_chunk_job,
    read_outcome,
)
from asyncjob.lifecycle.arrays.counting import redrive
from asyncjob.lifecycle.arrays.observed import ArrayGate, ChunkJob, ChunkOutcome, ObservedArray
from asyncjob.lifecycle.arrays.phases import ENDED_ARRAY_PHASES, ArrayPhase, ArrayReason
from asyncjob.lifecycle.arrays.state import ArrayState, ArrayView, state_to_json
from asyncjob.lifecycle.timestamps import parse_timestamp
from asyncjob.submission.arrays import oversize_message
from asyncjob.testing.arrays.array_store import ArrayRecord, FakeArrayStore
from asyncjob.testing.clock import FakeClock
from asyncjob.testing.dependencies import DependencyLookup, check_dependencies
from asyncjob.testing.store import FakeJobStore, JobRecord


class FakeArrayOperator:
    """Takes arrays forward.

    `change_job` changes control fields of a job as a user does, `find` tells how far what an array
    depends on is.
    """

    def __init__(
        self,
        arrays: FakeArrayStore,
        jobs: FakeJobStore,
        clock: FakeClock,
        change_job: Callable[[JobRecord, JsonObject], None],
        find: DependencyLookup,
    ) -> None:
        self._arrays = arrays
        self._jobs = jobs
        self._clock = clock
        self._change_job = change_job
        self._find = find

    def step(self) -> bool:
        """Take one step that is due now; False if there is none."""
        return any(self._step(record) for record in self._arrays)

    def _step(self, record: ArrayRecord) -> bool:
        chunks = self.chunks_of(record)
        observed = _observe(record, chunks, self._gate(record))
        if observed.array.state.phase in ENDED_ARRAY_PHASES:
            return self._redrive(record) or self._delete_counted(observed, chunks)
        return (
            self._create(record, observed)
            or self._write(record, advance(observed, self._clock.text))
            or self._control(observed, chunks)
            or self._delete_counted(observed, chunks)
        )

    def due_at(self) -> float | None:
        """Return when on the fake clock the next array may start."""
        times = (self._starts_at(record.view) for record in self._arrays)
        return min((at for at in times if at is not None), default=None)

    def _starts_at(self, array: ArrayView) -> float | None:
        over = array.state.has_started or array.state.phase in ENDED_ARRAY_PHASES
        if over or array.not_before is None:
            return None
        at = self._clock.elapsed_at(parse_timestamp(array.not_before))
        return at if at > self._clock.elapsed else None

    def _gate(self, record: ArrayRecord) -> ArrayGate | None:
        array = record.view
        if self._starts_at(array) is not None:
            return ArrayGate(ArrayReason.NOT_BEFORE, f"starts at {array.not_before}")
        check = check_dependencies(array.pending_dependencies, self._find)
        if check.failed:
            return ArrayGate(ArrayReason.DEPENDENCY_FAILED, check.failed)
        if check.waiting:
            return ArrayGate(ArrayReason.WAITING_FOR_DEPENDENCY, check.waiting)
        return None

    def chunks_of(self, record: ArrayRecord) -> Mapping[str, JobRecord]:
        """Return the chunks of an array that exist, by name."""
        uid = record.view.uid
        return {job.view.name: job for job in self._jobs if array_uid_of(job.obj) == uid}

    def _create(self, record: ArrayRecord, observed: ObservedArray) -> bool:
        if observed.array.cancel or not observed.uncreated:
            return False
        body = chunk_body(observed.array, record.obj, observed.uncreated[0])
        made = self._jobs.create(child(body, "metadata"), child(body, "spec"))
        record.created[made.view.name] = made.view.uid
        return True

    def _write(self, record: ArrayRecord, state: ArrayState) -> bool:
        stored = child(record.obj, "status")
        fields = {
            name: value for name, value in state_to_json(state).items() if stored.get(name) != value
        }
        if fields:
            self._arrays.change_status(record, fields)
        return bool(fields)

    def _redrive(self, record: ArrayRecord) -> bool:
        array = record.view
        if array.state.phase is not ArrayPhase.FAILED or array.redrive <= array.state.redrives:
            return False
        return self._write(record, redrive(array))

    def _control(self, observed: ObservedArray, chunks: Mapping[str, JobRecord]) -> bool:
        due, fields = due_control(observed)
        for chunk in due[:1]:
            self._change_job(chunks[chunk.name], fields)
        return bool(due)

    def _delete_counted(self, observed: ObservedArray, chunks: Mapping[str, JobRecord]) -> bool:
        for chunk in observed.unlisted:
            self._jobs.delete(chunks[chunk.name])
            return True
        return False


def _observe(
    record: ArrayRecord, chunks: Mapping[str, JobRecord], gate: ArrayGate | None
) -> ObservedArray:
    array = record.view
    outcomes: dict[str, ChunkOutcome | None] = {
        entry.name: read_outcome(chunks[entry.name].obj, entry)
        for entry in array.state.open
        if entry.name in chunks
    }
    jobs: dict[str, ChunkJob] = {name: read_chunk_job(job.obj) for name, job in chunks.items()}
    return ObservedArray(
        array=array,
        chunks=jobs,
        created=record.created,
        outcomes=outcomes,
        oversize=oversize_message(record.obj),
        gate=gate,
    )
