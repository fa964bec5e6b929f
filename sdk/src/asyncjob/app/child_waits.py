"""Waits for child jobs that hold no slot: `child.wait()`, `job.gather(…)`.

The worker looks at the children. Where they are not over soon it has the job parked, as for a sleep
or a signal, and the handler is run again from its top once all that the wait is for are over. What
a handler waits for follows from the children alone, so that each attempt that waits for the same
says so by the same key.
"""

import concurrent.futures
import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from asyncjob.app.child_jobs import ChildEnd, ChildRef, ChildWaits, end_to_json, read_end
from asyncjob.app.child_manifest import called_child
from asyncjob.app.park_gate import GatedWait, ParkGate
from asyncjob.json_types import JsonObject, as_object, flag, items, opt_number
from asyncjob.lifecycle.step_records import MAX_STEP_KEY_LENGTH
from asyncjob.lifecycle.waits import PARK_AFTER_SECONDS


class ChildWaitStore(Protocol):
    """Looks at the children that one attempt waits for; called from the handler's thread."""

    def children(
        self, key: str, children: Sequence[ChildRef], seconds: float | None
    ) -> "concurrent.futures.Future[JsonObject]":
        """Return how all have ended, that their time is over, or that the attempt is to park.

        See `ChildrenAnswer.from_json`. `seconds` are those that they have to end; None means that
        there is no limit.
        """

    def give_up(self, key: str) -> "concurrent.futures.Future[None]":
        """Record that the handler waits for them no longer: they do not wake the job."""


@dataclass(frozen=True, slots=True)
class ChildrenAnswer:
    """What has become of a wait for children: all are over, it has timed out, or neither."""

    ends: Sequence[ChildEnd] | None = None
    timed_out: bool = False
    left: float | None = None
    """Seconds until it times out; None if it does not, or is over."""

    @property
    def is_over(self) -> bool:
        """Return whether there is nothing left to wait for."""
        return self.timed_out or self.ends is not None

    @classmethod
    def from_json(cls, answer: JsonObject) -> "ChildrenAnswer":
        """Read the form that crosses from one process to another."""
        ends = [read_end(as_object(one)) for one in items(answer, "ends")]
        left = opt_number(answer, "left")
        return cls(ends if "ends" in answer else None, flag(answer, "timedOut"), left)

    def to_json(self) -> JsonObject:
        """Return the form that crosses from one process to another."""
        if self.ends is not None:
            return {"ends": [end_to_json(one) for one in self.ends]}
        return {"timedOut": True} if self.timed_out else {"left": self.left}


class ParkingChildWaits:
    """The waits for children of one attempt.

    `take_room` says whether the job may keep the end of one more wait; `held` waits with the slot
    held, where it may not, and where the limit is too short to park.
    """

    def __init__(
        self,
        store: ChildWaitStore,
        gate: ParkGate,
        take_room: Callable[[str], bool],
        held: ChildWaits,
    ) -> None:
        self._store = store
        self._gate = gate
        self._take_room = take_room
        self._held = held
        self._timed: dict[str, int] = {}
        self._naming = threading.Lock()

    async def children(self, refs: Sequence[ChildRef], seconds: float | None) -> Sequence[ChildEnd]:
        """Return how each child has ended; raises Parked if that parks the job."""
        if not refs:
            return []
        key = self._key(refs, seconds)
        if not key:
            with self._gate.hold():
                return await self._held.children(refs, seconds)
        return _ends_of(await self._wait(key, refs, seconds).answer(), refs, seconds)

    def children_blocking(
        self, refs: Sequence[ChildRef], seconds: float | None
    ) -> Sequence[ChildEnd]:
        """Return how each child has ended, in a sync handler; raises Parked as well."""
        if not refs:
            return []
        key = self._key(refs, seconds)
        if not key:
            with self._gate.hold():
                return self._held.children_blocking(refs, seconds)
        return _ends_of(self._wait(key, refs, seconds).answer_blocking(), refs, seconds)

    def _wait(
        self, key: str, refs: Sequence[ChildRef], seconds: float | None
    ) -> GatedWait[ChildrenAnswer]:
        return GatedWait(
            self._gate,
            key,
            f"{key} not over",
            lambda: self._store.children(key, refs, seconds),
            ChildrenAnswer.from_json,
            self._store.give_up,
        )

    def _key(self, refs: Sequence[ChildRef], seconds: float | None) -> str:
        """Return the key of a wait that may park; empty if it may not.

        It tells waits for different children apart. The end of one with a limit is kept in the
        job, so each such wait has a key of its own: the same may be waited for again and again.
        """
        self._gate.check_wait(children_key(refs))
        if seconds is not None and seconds <= PARK_AFTER_SECONDS:
            return ""
        name, digest = children_key(refs), _digest(refs)
        if seconds is None:
            cut = len(refs[0].name) > _LONGEST_NAME_IN_KEY
            return f"{name} ({digest})" if len(refs) > 1 or cut else name
        with self._naming:
            self._timed[digest] = number = self._timed.get(digest, 0) + 1
        timed = (
            f"{name} ({digest}, timed)" if number == 1 else f"{name} ({digest}, timed, {number})"
        )
        return timed if self._take_room(timed) else ""


_LONGEST_NAME_IN_KEY: Final = MAX_STEP_KEY_LENGTH - 48
"""What is left of a key for the name of a child, beside the words around it."""


def children_key(refs: Sequence[ChildRef]) -> str:
    """Return what children are called: `child a`, `array a`, or `children a and 9 more`."""
    name = refs[0].name[-_LONGEST_NAME_IN_KEY:]
    if len(refs) > 1:
        return f"children {name} and {len(refs) - 1} more"
    return f"{called_child(refs[0].kind)} {name}"


def _digest(refs: Sequence[ChildRef]) -> str:
    """Return what tells these children from others, in whichever order."""
    uids = "\n".join(sorted({ref.uid for ref in refs}))
    return hashlib.sha256(uids.encode()).hexdigest()[:8]


def _ends_of(
    answer: ChildrenAnswer, refs: Sequence[ChildRef], seconds: float | None
) -> Sequence[ChildEnd]:
    """Return how the children have ended; raises TimeoutError."""
    if answer.timed_out:
        have = "has" if len(refs) == 1 else "have"
        raise TimeoutError(f"{children_key(refs)} {have} not finished within {seconds} s")
    return answer.ends or ()
