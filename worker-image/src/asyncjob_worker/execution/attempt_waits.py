"""The waits of one attempt: whether each is over, is waited for with the slot held, or parks.

Works in the event loop. A wait that is over soon keeps the slot, as does one that the operator that
leads cannot wake. Ends are times of the API server's clock.

A signal is looked for in the job as it was claimed, then in the job itself: what came meanwhile
spares a park. Where a signal times out with the slot held, the mark that says so is a write of its
own. It is refused if the signal has come before, and the signal is refused after it: so one of the
two is what every later attempt finds.

Children are looked at for as long as a wait keeps its slot anyway. No job is parked before it is
known which of the children that it waits for are unfinished: it would be woken at once by those
that are over, again and again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from asyncjob.app.child_jobs import ChildRef, ChildView
from asyncjob.app.child_waits import ChildrenAnswer
from asyncjob.app.errors import AttemptOverError, StepRefusedError
from asyncjob.app.waits import SignalAnswer
from asyncjob.deep_json import levels_read
from asyncjob.errors import ApiError, InvalidError, ObjectNotFoundError, TooLargeError
from asyncjob.json_types import JsonObject, as_object, child, flag, text
from asyncjob.lifecycle.signals import readable_signals, signals_of
from asyncjob.lifecycle.timestamps import format_timestamp, try_parse_timestamp
from asyncjob.lifecycle.waits import (
    MAX_WAITING,
    PARK_AFTER_SECONDS,
    WAKES,
    WaitedChild,
    WaitKind,
    can_be_named,
    children_wait,
    open_wait,
    signal_wait,
    wait_record,
    waits_of,
    wake_of,
)
from asyncjob.names import job_path
from asyncjob_worker.clock import boottime
from asyncjob_worker.execution.children.awaited_children import (
    AttemptChildren,
    AwaitedChildren,
    ChildLooks,
)
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.step_writer import StepWriter

log = structlog.get_logger()

RECHECK_SECONDS: Final = 10.0
"""How often a wait that holds its slot asks whether it may park by now."""

LOOK_SECONDS: Final = 2.0
"""How often a wait that holds its slot looks for its signal."""

WAIT_TURN_SECONDS: Final = 0.5
"""How often a wait that holds its slot looks whether the attempt has to stop."""

CUT_SECONDS: Final = 1.0
"""The API server tells its time in whole seconds, cut: with these no wait ends too early."""

NEVER: Final = float("inf")

MayPark = Callable[[Collection[str]], Awaitable[bool]]
"""Whether the operator that leads wakes jobs that are parked for these, of `WAKES`."""


@dataclass(frozen=True, slots=True)
class WaitServices:
    """What the waits of one worker process share.

    `server_time` is the API server's clock in epoch seconds; `read_object` reads from it by path.
    A wait for children keeps its slot for `grace` seconds, then lists them every `look_seconds`.
    """

    writer: StepWriter
    may_park: MayPark
    server_time: Callable[[], float]
    read_object: Callable[[str], Awaitable[JsonObject]]
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    grace: float = PARK_AFTER_SECONDS
    look_seconds: float = LOOK_SECONDS


class AttemptWaits:
    """The waits of one held job; `lock` is held while something is written."""

    def __init__(
        self,
        services: WaitServices,
        held: HeldJob,
        lock: asyncio.Lock,
        children: AttemptChildren,
    ) -> None:
        self._services = services
        self._held = held
        self._lock = lock
        self._children = children
        self._looks = ChildLooks(children, held.job.name, services.look_seconds)
        self._unchecked: set[AwaitedChildren] = set()
        self._read: dict[str, Mapping[ChildRef, ChildView]] = {}
        self._is_closed = False
        self._records = dict(waits_of(held.status))
        self._open: dict[str, JsonObject] = {}
        self._unstored: set[str] = set()
        self._parkable: set[str] = set()
        self._held_up: set[str] = set()
        self._marks: set[asyncio.Task[bool]] = set()
        self._has_warned = False

    @property
    def records(self) -> JsonObject:
        """The records of all waits so far, by key."""
        return self._records

    @property
    def open(self) -> dict[str, JsonObject]:
        """The waits of this attempt that are not over, and that the job may be parked for."""
        return {
            key: record
            for key, record in sorted(self._open.items())
            if wake_of(record) in self._parkable
        }

    async def sleep(self, key: str, seconds: float) -> float:
        """Return 0 once the sleep is over, or the seconds left of it: the attempt is to park."""
        self._check_taken(key)
        if key not in self._records and seconds <= PARK_AFTER_SECONDS:
            await self._hold(key, boottime, boottime() + seconds)
            return 0.0
        self._begin(WaitKind.SLEEP, key, seconds)
        server_time = self._services.server_time
        ends_at = self._end_of(key)
        while ends_at - server_time() > PARK_AFTER_SECONDS:
            self._check_not_over(key)
            if await self._may_park(ends_at - PARK_AFTER_SECONDS):
                await self._keep_if_held_up(key)
                return max(ends_at - server_time(), PARK_AFTER_SECONDS)
            await self._keep(key)
            await self._hold(key, server_time, min(ends_at, server_time() + RECHECK_SECONDS))
        await self._hold(key, server_time, ends_at)
        self._open.pop(key, None)
        return 0.0

    async def signal(
        self, name: str, seconds: float | None, payload_schema: JsonObject | None = None
    ) -> SignalAnswer:
        """Return the signal, that it has timed out, or that the attempt is to park.

        While the job is parked it shows the schema of the payload that the handler takes.
        """
        self._check_taken(name)
        if flag(as_object(self._records.get(name)), "over"):
            return SignalAnswer(timed_out=True)
        found = signals_of(self._held.spec).get(name)
        if found is not None:
            return SignalAnswer(as_object(found))
        self._begin(WaitKind.SIGNAL, name, seconds)
        self._open[name] = signal_wait(self._open[name], payload_schema)
        answer = await self._awaited(name)
        if answer.is_over:
            self._open.pop(name, None)
        return answer

    async def _awaited(self, name: str) -> SignalAnswer:
        """Return what becomes of a signal that had not been sent as the job was claimed."""
        server_time, ends_at = self._services.server_time, self._end_of(name)
        while True:
            self._check_not_over(name)
            found = await self._look_for(name)
            if found is not None:
                return SignalAnswer(found)
            left = ends_at - server_time()
            if left <= 0 and await self._marked(self._time_out(name)):
                return SignalAnswer(timed_out=True)
            if left > PARK_AFTER_SECONDS:
                if await self._may_park(min(ends_at, server_time() + LOOK_SECONDS)):
                    await self._keep_if_held_up(name)
                    return SignalAnswer(left=None if left == NEVER else left)
                await self._keep(name)
            await self._hold(name, server_time, min(ends_at, server_time() + LOOK_SECONDS))

    async def children(
        self, key: str, refs: Sequence[ChildRef], seconds: float | None
    ) -> ChildrenAnswer:
        """Return how the children have ended, that their time is over, or that it is to park."""
        self._check_taken(key)
        if flag(as_object(self._records.get(key)), "over"):
            return ChildrenAnswer(timed_out=True)
        self._begin(WaitKind.CHILDREN, key, seconds)
        self._name_children(key, refs)
        awaited = AwaitedChildren(refs, self._children, self._looks, self._read.pop(key, {}))
        self._unchecked.add(awaited)
        try:
            answer = await self._ended(key, awaited)
        except Exception:
            self._open.pop(key, None)  # else a park for anything else would be woken by it at once
            raise
        finally:
            self._set_checked(awaited)
            awaited.give_up()
        if answer.is_over:
            self._open.pop(key, None)
        else:
            self._read[key] = awaited.read()
        return answer

    async def _ended(self, key: str, awaited: AwaitedChildren) -> ChildrenAnswer:
        server_time, ends_at = self._services.server_time, self._end_of(key)
        park_at = boottime() + self._services.grace
        while pending := awaited.pending:
            self._check_not_over(key)
            left = ends_at - server_time()
            if left <= 0:
                if await awaited.unfinished():
                    await self._marked(self._mark_late(key))
                    return ChildrenAnswer(timed_out=True)
            elif left > PARK_AFTER_SECONDS and boottime() >= park_at:
                if await self._is_permitted():
                    named = await self._name_unfinished(key, awaited)
                    if named and await self._may_park(min(ends_at, server_time() + LOOK_SECONDS)):
                        await self._keep_if_held_up(key)
                        return ChildrenAnswer(left=None if left == NEVER else left)
                else:
                    await self._keep(key)
            waits = [one for one in (left, park_at - boottime()) if one > 0]
            turn = min([WAIT_TURN_SECONDS, *waits])
            await asyncio.wait(pending, timeout=turn, return_when=asyncio.FIRST_COMPLETED)
        return ChildrenAnswer(awaited.ends())

    async def _name_unfinished(self, key: str, awaited: AwaitedChildren) -> bool:
        """Name the unfinished children in the wait; False if none is known to be unfinished."""
        named = await awaited.unfinished()
        if named:
            self._name_children(key, named)
            self._set_checked(awaited)
        return bool(named)

    def _set_checked(self, awaited: AwaitedChildren) -> None:
        """Record that it is known which children of the wait are unfinished."""
        awaited.checked.set()
        self._unchecked.discard(awaited)

    def _name_children(self, key: str, refs: Sequence[ChildRef]) -> None:
        children = [WaitedChild(ref.name, ref.uid, ref.kind) for ref in refs]
        record = as_object(self._records.get(key)) or open_wait(WaitKind.CHILDREN)
        self._open[key] = children_wait(record, children)

    async def _are_checked(self, until: float) -> bool:
        """Return whether it is known by then which children that are waited for are unfinished."""
        while self._unchecked:
            if self._services.server_time() >= until:
                return False
            await self._services.pause(WAIT_TURN_SECONDS)
        return True

    async def _mark_late(self, key: str) -> bool:
        """Mark a wait for children as over by time, for each later attempt as well."""
        marked: JsonObject = {**as_object(self._records[key]), "over": True}
        async with self._lock:
            try:
                await self._write(key, marked)
            except (InvalidError, TooLargeError) as error:
                raise StepRefusedError(f"the end of the wait for {key}: {error}") from error
            self._records[key] = marked
        return True

    def _begin(self, kind: WaitKind, key: str, seconds: float | None) -> None:
        if seconds is not None and key not in self._records:
            ends_at = self._services.server_time() + CUT_SECONDS + seconds
            until = format_timestamp(datetime.fromtimestamp(ends_at, UTC))
            self._records[key] = wait_record(kind, until)
            self._unstored.add(key)
        self._open[key] = as_object(self._records.get(key)) or open_wait(kind)

    def _end_of(self, key: str) -> float:
        """Return when a wait is over, in epoch seconds; one that is marked is over."""
        record = as_object(self._open.get(key)) or as_object(self._records.get(key))
        if flag(record, "over"):
            return 0.0
        until = try_parse_timestamp(text(record, "until"))
        if until is not None:
            return until.timestamp()
        return 0.0 if text(record, "kind") == WaitKind.SLEEP else NEVER

    async def _may_park(self, until: float) -> bool:
        """Return whether the job may be parked for all that it waits for, known by then."""
        known = await self._is_permitted() and await self._are_checked(until)
        return known and self._can_be_named()

    async def _is_permitted(self) -> bool:
        """Return whether a park can name all that it waits for, and the leader wakes it from that.

        What it wakes from counts for the waits that begin before the job is parked, too.
        """
        granted = {one for one in sorted(WAKES) if await self._services.may_park({one})}
        self._parkable |= granted
        needed = {wake_of(record) for record in self._open.values()}
        return needed <= granted and self._can_be_named()

    def _can_be_named(self) -> bool:
        """Return whether a park can name all that has to wake it; say once if it cannot."""
        fits = can_be_named(self._open)
        if not fits and not self._has_warned:
            self._has_warned = True
            signals = sum(text(one, "kind") == WaitKind.SIGNAL for one in self._open.values())
            log.warning(
                "slot kept by a job that waits for more than a park names",
                job=self._held.job.name,
                signals=signals,
                most=MAX_WAITING,
            )
        return fits

    async def _keep_if_held_up(self, key: str) -> None:
        """Store the end of a wait that is asked for again: the body of a step holds up the park."""
        if key in self._held_up:
            await self._keep(key)
        self._held_up.add(key)

    def give_up(self, key: str) -> None:
        """Wait for this no longer: the handler has cancelled it."""
        self._open.pop(key, None)

    def close(self) -> None:
        """Take no wait any more: what the handler leaves is decided from what it has open now."""
        self._is_closed = True
        self._looks.stop()

    async def settle(self, seconds: float) -> None:
        """Wait until it is known whether waits have timed out, for some seconds at most."""
        if self._marks:
            await asyncio.wait(self._marks, timeout=seconds)

    async def _hold(self, key: str, clock: Callable[[], float], until: float) -> None:
        """Wait with the slot held, by whichever clock."""
        while (left := until - clock()) > 0:
            self._check_not_over(key)
            await self._services.pause(min(left, WAIT_TURN_SECONDS))
        self._check_not_over(key)

    def _check_taken(self, key: str) -> None:
        if self._is_closed:
            raise AttemptOverError(f"the attempt is over: {key!r} is not waited for")

    def _check_not_over(self, key: str) -> None:
        if self._held.stopped is not None:
            raise AttemptOverError(f"the attempt is over ({self._held.stopped.value}): {key!r}")

    async def _look_for(self, name: str) -> JsonObject | None:
        """Return the signal if the job has it by now; a job that cannot be read has none yet."""
        try:
            return await self._read_signal(name)
        except ApiError as error:
            log.warning("signal not looked for", job=self._held.job.name, error=str(error))
            return None

    async def _read_signal(self, name: str) -> JsonObject | None:
        """Return the signal that the job has, None for none; raises what a request raises."""
        job = self._held.job
        try:
            found = await self._services.read_object(job_path(job.namespace, job.name))
        except ObjectNotFoundError:
            return None
        if text(child(found, "metadata"), "uid") != job.uid:
            return None
        signals = readable_signals(signals_of(child(found, "spec")), levels_read(found))
        return as_object(signals[name]) if name in signals else None

    async def _keep(self, key: str) -> None:
        """Store the end of a wait that holds its slot: a crash must not begin it again."""
        async with self._lock:
            if key not in self._unstored:
                return
            try:
                await self._write(key, as_object(self._records[key]))
            except (InvalidError, TooLargeError) as error:
                log.warning("end of a wait not stored", job=self._held.job.name, error=str(error))

    async def _marked(self, work: Coroutine[Any, Any, bool]) -> bool:
        """Return what comes of a write that marks a wait as over.

        The write goes on though the handler is over meanwhile: what it leaves has to be known.
        """
        mark = asyncio.ensure_future(work)
        self._marks.add(mark)
        mark.add_done_callback(self._marks.discard)
        return await asyncio.shield(mark)

    async def _time_out(self, name: str) -> bool:
        """Mark a signal as not come in time; False if it has come after all."""
        marked: JsonObject = {**as_object(self._records[name]), "over": True}
        async with self._lock:
            try:
                await self._write(name, marked)
            except (InvalidError, TooLargeError) as error:
                refusal = error
            else:
                self._records[name] = marked
                return True
        log.info("signal not timed out", job=self._held.job.name, error=str(refusal))
        if await self._is_absent(name):
            raise StepRefusedError(f"the end of the wait for signal {name!r}: {refusal}")
        return False

    async def _is_absent(self, name: str) -> bool:
        """Return whether the job has no such signal, once that is known."""
        while True:
            self._check_not_over(name)
            try:
                return await self._read_signal(name) is None
            except ApiError as error:
                log.warning("signal not looked for", job=self._held.job.name, error=str(error))
            await self._services.pause(LOOK_SECONDS)

    async def _write(self, key: str, record: JsonObject) -> None:
        first = self._unstored >= self._records.keys()
        await self._services.writer.write(self._held, key, record, first=first, field="waits")
        self._unstored.discard(key)
