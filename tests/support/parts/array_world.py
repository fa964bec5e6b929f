"""An array, its chunks and workers without processes, and operators that die at a request.

The operator decides by the real core; here each of its requests takes effect, or does not, or takes
effect late, as the test says. Whatever is written is checked by what the rules of the API server
demand.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from asyncjob.lifecycle.arrays.chunk_jobs import (
    array_uid_of,
    chunk_body,
    is_chunk,
    read_chunk_job,
    read_outcome,
)
from asyncjob.lifecycle.arrays.chunks import ChunkReport, ItemError, read_checkpoint
from asyncjob.lifecycle.arrays.item_index import IndexBuilder
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.arrays.observed import GONE, ChunkJob, ChunkOutcome
from asyncjob.lifecycle.arrays.state import ArrayView, read_array
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.timestamps import add_seconds
from asyncjob.submission.arrays import oversize_message
from asyncjob_operator.core.arrays.decide import decide_array
from asyncjob_operator.core.arrays.gates import check_start
from asyncjob_operator.core.arrays.snapshot import (
    ArrayEffect,
    ArraySnapshot,
    ControlChunks,
    CreateChunks,
    DeleteArray,
    DeleteChunks,
    ReadChunks,
    WriteArrayStatus,
)
from asyncjob_operator.core.dependencies import Dependencies, DependencyState, RelatedJob
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.policies.dead_letters import Missing
from asyncjob_operator.core.schedules.reservation import may_create

Object = dict[str, Any]
START = 1_800_000_000.0
CLAIMED = "2026-01-01T00:00:00.000Z"
TIME_LIMIT = 1800  # of a chunk, in seconds
FINISHED = {"Succeeded", "DeadLetter", "Cancelled"}
ENDED = {"Succeeded", "Failed", "Cancelled"}


class OperatorDied(Exception):  # noqa: N818  # an end, not an error
    """The operator's process has ended at a request."""


def raw_array(name: str = "thumbs", **spec: Any) -> Object:
    """Return an array as the API server stores a new one."""
    return {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncArray",
        "metadata": {"name": name, "namespace": "ns", "uid": "uid-a", "resourceVersion": "1"},
        "spec": {"type": "thumb", "queue": "default", "priority": 0, **spec},
        "status": {"phase": "Pending"},
    }


def counts_add_up(status: Mapping[str, Any]) -> bool:
    """Return whether every item below `next` is in exactly one place."""
    places = [
        *(ItemRanges.parse(entry["items"]) for entry in status.get("open", [])),
        ItemRanges.parse(status.get("requeued", "")),
        *(ItemRanges.parse(one) for one in status.get("suspects", [])),
        ItemRanges.parse(status.get("failedItems", "")),
    ]
    union = ItemRanges()
    for place in places:
        union |= place
    unlisted = status.get("failedUnlisted", 0)
    return (
        len(union) == sum(map(len, places))
        and len(union) + status["succeeded"] + unlisted == status["next"] <= status["total"]
    )


@dataclass
class ArrayRun:
    """The API server and the workers: what is stored, and what has been run."""

    array: Object
    failing: Collection[int] = ()
    killing: Collection[int] = ()
    hanging: Collection[int] = ()
    item_seconds: float = 1.0
    """How long an item takes by its worker's clock; here no time passes."""

    store_refuses: bool = False
    """Whether the store of the results takes those of one item of each chunk, and no more."""

    dependency: Phase = Phase.SUCCEEDED
    """What has become of the job that the array may depend on."""

    now: float = 0.0
    jobs: dict[str, Object] = field(default_factory=dict)
    runs: dict[int, int] = field(default_factory=dict)
    """How often each item was run to its end."""

    records: int = 0
    """Of the file of the items, if they are in one."""

    indexed: int = 0
    """How often its records have been found."""

    unreadable: bool = False
    changed: bool = False
    most_objects: int = 0
    requests: int = 0
    late: list[tuple[float, Callable[[], object]]] = field(default_factory=list)
    """What takes effect at a later time, although its sender is gone."""

    died_at: int | None = None
    how: str = "before"
    _uids: int = 0

    @property
    def status(self) -> Object:
        """The array's status."""
        status: Object = self.array["status"]
        return status

    def request(self, effect: Callable[[], Any]) -> Any:
        """Let a request take effect, unless the operator dies before it, after it or leaves it."""
        self.requests += 1
        if self.requests - 1 != self.died_at:
            return effect()
        if self.how == "after":
            effect()
        elif self.how == "late":
            self.late.append((self.now + 4.9, effect))
        raise OperatorDied

    def write_status(self, fields: Mapping[str, Any], version: str) -> Object:
        """Merge fields into the array's status, as long as nobody else has written."""
        if self.array["metadata"]["resourceVersion"] != version:
            raise OperatorDied
        before, status = self.status, {**self.status, **fields}
        status = {name: value for name, value in status.items() if value is not None}
        assert counts_add_up(status), status
        if "index" in before:
            assert status["index"] == before["index"]
        assert status["next"] >= before.get("next", 0)
        assert status["succeeded"] >= before.get("succeeded", 0)
        assert before["phase"] not in {"Succeeded", "Cancelled"}
        self._store({"status": status})
        return self.array

    def ask(self, **spec: Any) -> None:
        """Let a person change control fields of the array."""
        self._store({"spec": {**self.array["spec"], **spec}})

    def create(self, body: Any) -> Object | None:
        """Create a job; None if its name is taken."""
        name = body["metadata"]["name"]
        if name in self.jobs:
            return None
        self._uids += 1
        metadata = {**body["metadata"], "uid": f"uid-{self._uids}"}
        self.jobs[name] = {**body, "metadata": metadata, "status": {"phase": "Queued"}}
        self.most_objects = max(self.most_objects, len(self.jobs))
        return self.jobs[name]

    def delete(self, name: str, uid: str) -> None:
        """Delete a job if it still is the one of this UID."""
        if name in self.jobs and self.jobs[name]["metadata"]["uid"] == uid:
            del self.jobs[name]

    def control(self, name: str, uid: str, fields: Mapping[str, Any]) -> None:
        """Set control fields of a job."""
        if name in self.jobs and self.jobs[name]["metadata"]["uid"] == uid:
            job = self.jobs[name]
            self.jobs[name] = {**job, "spec": {**job["spec"], **fields}}

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and what was late arrive."""
        self.now += seconds
        due = [effect for at, effect in self.late if at <= self.now]
        self.late = [(at, effect) for at, effect in self.late if at > self.now]
        for effect in due:
            with suppress(OperatorDied):  # it conflicts, and nobody waits for the answer
                effect()
            self.work()  # a worker may be quicker than the operator

    def work(self) -> None:
        """Let workers run every chunk that may run, to its end or to a crash."""
        for name, job in list(self.jobs.items()):
            if job["status"]["phase"] in FINISHED:
                continue
            if job["spec"].get("cancel"):
                self._set(name, phase="Cancelled", reason="CancelRequested")
            elif not job["spec"].get("suspend"):
                self._run(name, job)

    def _find_records(self, name: str) -> None:
        if self.unreadable:
            self._fail(name, "NotRetryable", "ItemsUnreadable", "Validation")
            return
        self.indexed += 1
        builder = IndexBuilder()
        for record in range(self.records):
            builder.add(7 * record)
        self._set(name, phase="Succeeded", result=builder.build(7 * self.records, "v1").to_json())

    def _run(self, name: str, job: Object) -> None:
        if job["spec"]["type"].endswith("/index"):
            self._find_records(name)
            return
        file = job["spec"]["payload"].get("file")
        assert file is None or file["version"] == "v1"
        if file is not None and self.changed:
            self._fail(name, "NotRetryable", "ItemsUnreadable", "Validation")
            return
        items = ItemRanges.parse(job["spec"]["payload"]["items"])
        before = read_checkpoint(job["status"].get("checkpoint"), items)
        done, failed, last = list(before.done), list(before.failed), None
        for item in items - before.done - before.failed:
            if item in self.killing or item in self.hanging or (self.store_refuses and done):
                last = item
                break
            self.runs[item] = self.runs.get(item, 0) + 1
            (failed if item in self.failing else done).append(item)
        errors = tuple(ItemError(item, "ValueError", "Internal", "no") for item in failed)
        report = ChunkReport(ItemRanges.of(done), ItemRanges.of(failed), errors)
        seconds = self.item_seconds * (len(done) + len(failed))
        self._set(
            name,
            checkpoint=report.checkpoint(items),
            attempt=1,
            startTime=CLAIMED,
            completionTime=add_seconds(CLAIMED, TIME_LIMIT if last in self.hanging else seconds),
            effective={"executionTimeoutSeconds": TIME_LIMIT},
        )
        if last is None:
            self._set(name, phase="Succeeded", result=report.result())
        elif last in self.killing:
            self._crash(name, job)
        elif last in self.hanging:
            self._fail(name, "ExecutionTimeout", "ExecutionTimeout", "Timeout")
        else:
            self._fail(name, "NotRetryable", "ResultsRefused", "Validation")

    def _crash(self, name: str, job: Object) -> None:
        crashes = job["status"].get("crashes", 0) + 1
        self._set(name, crashes=crashes)
        if crashes > job["spec"].get("retryPolicy", {}).get("maxCrashes", 3):
            self._fail(name, "CrashBudgetExhausted", "WorkerCrashed", "Crash")

    def _fail(self, name: str, reason: str, kind: str, category: str) -> None:
        message = f"it failed: {kind}"
        error = {"type": kind, "category": category, "message": message}
        self._set(name, phase="DeadLetter", reason=reason, error=error, message=message)

    def _set(self, name: str, **status: Any) -> None:
        job = self.jobs[name]
        self.jobs[name] = {**job, "status": {**job["status"], **status}}

    def _store(self, parts: Object) -> None:
        version = str(int(self.array["metadata"]["resourceVersion"]) + 1)
        metadata = {**self.array["metadata"], "resourceVersion": version}
        self.array = {**self.array, **parts, "metadata": metadata}


class ArrayOperator:
    """One operator's memory of the array, and its requests; dies as the world says."""

    def __init__(self, world: ArrayRun, identity: str) -> None:
        self.world = world
        self.identity = identity
        self.created: dict[str, str] = {}
        self.claimed_at: float | None = None
        self.written_at: float | None = None
        self.seen: tuple[tuple[str, int], float] | None = None
        self.deleted = False

    def reconcile(self) -> None:
        """Carry out one effect after another until there is none."""
        outcomes: dict[str, ChunkOutcome | None] = {}
        for _ in range(1000):
            effect = decide_array(self.snapshot(outcomes), self.clock()).effect
            if effect is None or isinstance(effect, DeleteArray):
                self.deleted = effect is not None
                return
            if isinstance(effect, WriteArrayStatus):
                outcomes = {}
            self.carry_out(effect, outcomes)
        raise AssertionError("the operator never comes to rest")

    def carry_out(self, effect: ArrayEffect, outcomes: dict[str, ChunkOutcome | None]) -> None:
        """Send the requests of an effect."""
        match effect:
            case WriteArrayStatus():
                self.write(effect)
            case CreateChunks(entries):
                self.create(entries)
            case ReadChunks(entries):
                for entry in entries:
                    found = self.world.request(partial(self.get, entry.name))
                    outcomes[entry.name] = read_outcome(found, entry) if found else None
            case ControlChunks() | DeleteChunks():
                for chunk in effect.chunks:
                    self.world.request(partial(self.change, effect, chunk))
            case DeleteArray():
                raise AssertionError("the array is not deleted here")

    def change(self, effect: ControlChunks | DeleteChunks, chunk: ChunkJob) -> None:
        """Set control fields of a chunk, or delete it."""
        if isinstance(effect, ControlChunks):
            self.world.control(chunk.name, chunk.uid, effect.fields)
        else:
            self.world.delete(chunk.name, chunk.uid)

    def clock(self) -> Now:
        """Return the time."""
        return Now(self.world.now, START + self.world.now)

    def get(self, name: str) -> Object | None:
        """Read a job."""
        return self.world.jobs.get(name)

    def snapshot(self, outcomes: Mapping[str, ChunkOutcome | None]) -> ArraySnapshot:
        """Return what it decides by: it has seen whatever is stored."""
        array = read_array(self.world.array)
        writer = (array.state.writer, array.state.claims)
        if self.seen is None or self.seen[0] != writer:
            self.seen = (writer, self.world.now)
        chunks = [read_chunk_job(job) for job in self.world.jobs.values() if array_uid_of(job)]
        return ArraySnapshot(
            array=array,
            chunks={chunk.name: chunk for chunk in chunks},
            identity=self.identity,
            writer_since=self.seen[1],
            claimed_at=self.claimed_at,
            written_at=self.written_at,
            created=self.created,
            outcomes=outcomes,
            oversize=oversize_message(self.world.array),
            gate=check_start(array, self.dependencies(array), Missing(None, 0), self.clock()).gate,
        )

    def dependencies(self, array: ArrayView) -> Dependencies:
        """Return what the array depends on, as it is stored."""
        states = (
            DependencyState(one, RelatedJob("ns", one.name, "uid-d", self.world.dependency))
            for one in array.pending_dependencies
        )
        return Dependencies(tuple(states))

    def write(self, write: WriteArrayStatus) -> None:
        """Write the status."""
        version, sent_at = self.world.array["metadata"]["resourceVersion"], self.world.now
        self.world.request(lambda: self.world.write_status(write.fields, version))
        self.written_at = sent_at
        if write.claims:
            self.claimed_at = sent_at

    def create(self, entries: Any) -> None:
        """Create chunks while it may."""
        array = read_array(self.world.array)
        for entry in entries:
            if not may_create(self.claimed_at, self.world.now):
                return
            body = chunk_body(array, self.world.array, entry)
            made = self.world.request(partial(self.world.create, body))
            if made is None:
                made = self.world.request(partial(self.get, entry.name))
            ours = made is not None and is_chunk(made, body)
            self.created[entry.name] = made["metadata"]["uid"] if ours and made else GONE


def play(
    world: ArrayRun, people: Mapping[int, Callable[[ArrayRun], object]] | None = None
) -> ArrayOperator:
    """Play an array's life; `people` act at the given rounds. Returns the last operator."""
    people = people or {}
    operator, deaths = ArrayOperator(world, "operator-0"), 0
    for number in range(400):
        if number in people:
            people[number](world)
        try:
            operator.reconcile()
        except OperatorDied:
            deaths += 1
            operator = ArrayOperator(world, f"operator-{deaths}")
        world.work()
        world.pass_time(0.6)
        redriven = world.status.get("redrives", 0) == world.array["spec"].get("redrive", 0)
        over = world.status["phase"] in ENDED and redriven and not world.jobs and not world.late
        if over and number >= max(people, default=0):
            return operator
    raise AssertionError(f"the array never ends: {world.status}")
