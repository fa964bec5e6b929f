"""Rules of an array and its chunks: reserved, ended, how many, and none left over.

Arrays and jobs come by two watches, so that a chunk may be seen before the version of its array
that reserved it. What depends on both is judged once a version of the array has come that is newer,
by the order of resourceVersions, which all objects in one store share.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from asyncjob.audit import catalog
from asyncjob.audit.arrays import array_rules
from asyncjob.audit.arrays.array_version import ArrayVersion, read_array_version
from asyncjob.audit.catalog import AuditRule, Broken, Subject, Violation
from asyncjob.audit.job_groups import subject_of
from asyncjob.audit.job_version import JobVersion
from asyncjob.json_types import JsonObject
from asyncjob.names import ARRAYS

SETTLING_SECONDS: Final = 10.0
"""How far one watch may be behind the other at the end of a history."""

LEFTOVER_SECONDS: Final = 600.0
"""In which chunks are deleted after their array, beside the time that they have to stop."""

UNKNOWN_GRACE_SECONDS: Final = 3600.0
"""The longest time to stop that an array may give, of one that was never seen."""


_CREATED_KEPT: Final = 1000
"""Chunks kept until a newer version of their array comes, which takes seconds."""


@dataclass(slots=True)
class _Chunk:
    """A chunk that there is."""

    newest: JobVersion
    first_seen: float
    ended_at: int = 0
    """`order` of the version with which it ended; 0: it has not, or that was not seen."""


@dataclass(frozen=True, slots=True)
class _Former:
    """A chunk that came off the list; `order` and `seen` of the version that did so."""

    reserved: int
    """`order` of the version that listed it."""

    order: int
    seen: float
    counted: bool
    """Whether items of it count, and its job had not ended as far as was seen."""


@dataclass(slots=True)
class _Array:
    """What is known of one array, or of one whose chunks alone were seen."""

    newest: ArrayVersion | None = None
    known_since: int = 0
    """`order` from which on no version is missing."""

    gone_at: float = 0.0
    ended_at: float = 0.0
    reserved: dict[str, int] = field(default_factory=dict)
    """Chunk that is listed → `order` of the version that listed it."""

    former: dict[str, _Former] = field(default_factory=dict)
    """Chunks that are not listed any more, and whose job is not known to be gone."""

    chunks: dict[str, _Chunk] = field(default_factory=dict)
    created: deque[JobVersion] = field(default_factory=lambda: deque(maxlen=_CREATED_KEPT))
    """Chunks whose reservation is to be judged."""

    deleted: set[str] = field(default_factory=set)
    """Chunks that are listed and gone."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing more can be judged of it."""
        return not self.chunks and (self.newest is None or bool(self.gone_at))


class ArrayChecker:
    """All arrays, and the chunks of each."""

    def __init__(self) -> None:
        self._arrays: dict[str, _Array] = {}
        self._listed: set[str] = set()
        self._recorded_since = 0.0
        self.seen = 0
        """Arrays that were seen."""

    def begin_list(self) -> None:
        """Record that arrays are listed: versions before may be missing."""
        self._listed = set()

    def end_list(self, at: float) -> None:
        """Record that the list is complete: an array that was not in it is gone."""
        self._recorded_since = self._recorded_since or at
        for uid, state in [*self._arrays.items()]:
            if state.newest is not None and uid not in self._listed and not state.gone_at:
                self._take_end(uid, state, at)

    def on_array(self, obj: JsonObject, seen: float, *, event: str) -> Iterator[Violation]:
        """Take a version of an AsyncArray."""
        now = read_array_version(obj, seen)
        state = self._arrays.setdefault(now.uid, _Array())
        was = state.newest
        if event == "DELETED":
            yield from self._judge_created(state, until=now.order)
            self._take_end(now.uid, state, seen)
            return
        if event == "LISTED":
            self._listed.add(now.uid)
        elif was is not None and now.order and now.order <= was.order:
            message = f"resourceVersion {now.version} after {was.version}"
            yield from _broken([(catalog.VERSION_ORDER, message)], was, now)
            return
        if event == "LISTED" and (was is None or was.version != now.version):
            state.known_since = now.order  # before chunks are judged that were reserved in the gap
        yield from self._judge_created(state, until=now.order)
        if was is None:
            self.seen += 1
        yield from _judge(was, now, event=event)
        yield from self._take(state, was, now, exact=event != "LISTED")

    def on_chunk(
        self, was: JobVersion | None, now: JobVersion, *, created: bool, exact: bool = True
    ) -> Iterator[Violation]:
        """Take a version of a chunk's job; not `exact`: some before it may be missing."""
        if was is not None and was.array_uid and was.array_uid != now.array_uid:
            yield from self.on_chunk_deleted(was, now.seen, in_gap=True)
        if not now.array_uid:
            return
        state = self._arrays.setdefault(now.array_uid, _Array())
        chunk = state.chunks.setdefault(now.name, _Chunk(now, now.seen))
        chunk.newest = now
        if was is None and created:
            state.created.append(now)
            yield from _check_parallelism(state, now)
        if now.finished and not (was is not None and was.finished):
            chunk.ended_at = now.order if exact and was is not None else 0
            yield from _check_ended(state, now, chunk.ended_at)

    def on_chunk_deleted(self, job: JobVersion, at: float, *, in_gap: bool) -> Iterator[Violation]:
        """Take a chunk that is gone."""
        state = self._arrays.get(job.array_uid)
        chunk = state.chunks.pop(job.name, None) if state is not None else None
        if state is None or chunk is None:
            return
        if not in_gap:
            yield from self._check_leftover(state, chunk, at)
        if job.name in state.former or job.name in state.reserved:
            for made in [one for one in state.created if one.uid == job.uid]:
                state.created.remove(made)
                yield from _check_reserved(state, made)
        former = state.former.pop(job.name, None)
        if former is None and job.name in state.reserved:
            state.deleted.add(job.name)
        if former is not None and former.counted and not job.finished and not in_gap:
            yield _of_chunk(catalog.ARRAY_CHUNK_ENDED, job, "its items counted, and it never ended")
        if state.is_settled:
            del self._arrays[job.array_uid]

    def on_end(self, ended: float) -> Iterator[Violation]:
        """Judge what was still open, as far as both watches had time enough to come."""
        if not self._recorded_since:
            return
        for state in self._arrays.values():
            late = [job for job in state.created if job.seen + SETTLING_SECONDS <= ended]
            for job in late:
                yield from _check_reserved(state, job)
            for name, former in state.former.items():
                chunk = state.chunks.get(name)
                if (
                    former.counted
                    and chunk is not None
                    and not chunk.newest.finished
                    and former.seen + SETTLING_SECONDS <= ended
                ):
                    message = f"its items counted while it was {chunk.newest.phase}"
                    yield _of_chunk(catalog.ARRAY_CHUNK_ENDED, chunk.newest, message)
            for chunk in state.chunks.values():
                yield from self._check_leftover(state, chunk, ended)

    def _take(
        self, state: _Array, was: ArrayVersion | None, now: ArrayVersion, *, exact: bool
    ) -> Iterator[Violation]:
        """Take in which chunks are listed, and which no longer are."""
        counted = array_rules.counted_by(was, now) if was is not None and exact else {}
        for name in [one for one in state.reserved if one not in now.open]:
            reserved = state.reserved.pop(name)
            if name in state.deleted:
                state.deleted.discard(name)
                continue
            chunk = state.chunks.get(name)
            settled = chunk is not None and chunk.newest.finished
            counts = name in counted and not settled
            state.former[name] = _Former(reserved, now.order, now.seen, counted=counts)
            if name in counted and chunk is not None and chunk.ended_at > now.order:
                message = f"its items counted in version {now.version}, before it had ended"
                yield _of_chunk(catalog.ARRAY_CHUNK_ENDED, chunk.newest, message)
        for name in now.open:
            state.reserved.setdefault(name, now.order)
        state.newest = now
        state.gone_at = 0.0
        state.ended_at = (state.ended_at or now.seen) if now.ended else 0.0
        for chunk in [*state.chunks.values()][:1] if was is None else ():
            yield from _check_parallelism(state, chunk.newest)

    def _take_end(self, uid: str, state: _Array, at: float) -> None:
        state.gone_at = at
        state.reserved.clear()
        state.former.clear()
        state.deleted.clear()
        state.created.clear()
        if state.is_settled:
            del self._arrays[uid]

    def _judge_created(self, state: _Array, *, until: int) -> Iterator[Violation]:
        """Judge the chunks created before a version of their array, by the one before."""
        while state.created and state.created[0].order < until:
            yield from _check_reserved(state, state.created.popleft())

    def _check_leftover(self, state: _Array, chunk: _Chunk, at: float) -> Iterator[Violation]:
        job, newest = chunk.newest, state.newest
        if job.deleting or not self._recorded_since:
            return
        if newest is None:  # its array was gone before the recording
            since, grace = state.gone_at or self._recorded_since, UNKNOWN_GRACE_SECONDS
        elif state.gone_at or (state.ended_at and job.name not in newest.open):
            since, grace = state.gone_at or state.ended_at, newest.grace
        else:
            return
        left = at - max(since, chunk.first_seen)
        if left > LEFTOVER_SECONDS + grace:
            what = "is gone" if state.gone_at or newest is None else "has ended"
            yield _of_chunk(
                catalog.ARRAY_LEFTOVER, job, f"still there {left:.0f} s after its array {what}"
            )


def _judge(was: ArrayVersion | None, now: ArrayVersion, *, event: str) -> Iterator[Violation]:
    """Judge a version, by itself and as the next after another."""
    if was is None:
        if event == "ADDED":
            yield from _broken(array_rules.check_created(now), None, now)
        yield from _broken(array_rules.check_version(now), None, now)
    elif was.version != now.version:
        yield from _broken(array_rules.check_version(now), was, now)
        check = array_rules.check_across_gap if event == "LISTED" else array_rules.check_change
        yield from _broken(check(was, now), was, now)


def _check_reserved(state: _Array, job: JobVersion) -> Iterator[Violation]:
    """Judge the creation of a chunk by the newest version of its array that is older."""
    array = state.newest
    if not job.is_item_chunk or job.order < state.known_since or array is None:
        return
    former = state.former.get(job.name)
    reserved = state.reserved.get(job.name, former.reserved if former is not None else 0)
    if not reserved or reserved > job.order:
        when = "only later" if reserved else "never"
        message = f"created, and {when} listed in {array.name}"
        yield _of_chunk(catalog.ARRAY_RESERVED, job, message)
    elif former is not None and former.order < job.order and not array.cancel:
        message = f"created after it was off the list of {array.name}"
        yield _of_chunk(catalog.ARRAY_RESERVED, job, message)


def _check_parallelism(state: _Array, job: JobVersion) -> Iterator[Violation]:
    array = state.newest
    if array is None or state.gone_at:
        return
    there = sum(chunk.newest.is_item_chunk for chunk in state.chunks.values())
    if there > 2 * array.parallelism:
        message = f"one of {there} chunks of {array.name}, whose parallelism is {array.parallelism}"
        yield _of_chunk(catalog.ARRAY_PARALLELISM, job, message)


def _check_ended(state: _Array, job: JobVersion, order: int) -> Iterator[Violation]:
    former = state.former.get(job.name)
    if former is None or not former.counted:
        return
    state.former[job.name] = replace(former, counted=False)
    if order > former.order:
        message = f"ended in version {job.version}, after its items had counted"
        yield _of_chunk(catalog.ARRAY_CHUNK_ENDED, job, message)


def _of_chunk(rule: AuditRule, job: JobVersion, message: str) -> Violation:
    return Violation(rule, subject_of(job), message, (job.version,), (job.seen,))


def _broken(
    found: Broken | list[tuple[AuditRule, str]], was: ArrayVersion | None, now: ArrayVersion
) -> Iterator[Violation]:
    pair = (now,) if was is None else (was, now)
    subject = Subject(ARRAYS, now.namespace, now.name, now.uid)
    for rule, message in found:
        versions, times = tuple(one.version for one in pair), tuple(one.seen for one in pair)
        yield Violation(rule, subject, message, versions, times)
