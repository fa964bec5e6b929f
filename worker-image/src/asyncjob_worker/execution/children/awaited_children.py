"""The children that an attempt waits for, as its worker looks at them, and how each has ended."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import structlog

from asyncjob.app.child_jobs import ChildEnd, ChildJobs, ChildRef, ChildView
from asyncjob.app.errors import AttemptOverError, ChildGoneError
from asyncjob.errors import ApiError
from asyncjob_worker.clock import boottime

log = structlog.get_logger()


class AttemptChildren(ChildJobs, Protocol):
    """The children of one attempt, as a worker looks at them."""

    async def unfinished(self) -> frozenset[str]:
        """Return the UIDs of the children that have not finished, by a list in the event loop."""


class ChildLooks:
    """Lists the children of an attempt: one list at a time, for all waits that ask meanwhile."""

    def __init__(self, children: AttemptChildren, job: str, every: float) -> None:
        self._children = children
        self._job = job
        self.every = every
        """Seconds between the looks of one wait."""

        self._listing: asyncio.Task[frozenset[str]] | None = None

    async def unfinished(self) -> frozenset[str]:
        """Return the UIDs of those that are known to be unfinished: none where the list fails."""
        if self._listing is None or self._listing.done():
            self._listing = asyncio.ensure_future(self._list())
        return await asyncio.shield(self._listing)

    def stop(self) -> None:
        """List nothing more."""
        if self._listing is not None:
            give_up(self._listing)

    async def _list(self) -> frozenset[str]:
        try:
            return await self._children.unfinished()
        except ApiError as error:
            log.warning("children not looked at", job=self._job, error=str(error))
            return frozenset()


class AwaitedChildren:
    """The children of one wait; made in the event loop, and given up at its end.

    Those that are unfinished are looked for now and then only, while their ends are read one after
    the other: for a list the API server goes through the whole namespace. `known` are ends that
    have been read already, where the body of a step holds up a park for them.
    """

    def __init__(
        self,
        refs: Sequence[ChildRef],
        children: AttemptChildren,
        looks: ChildLooks,
        known: Mapping[ChildRef, ChildView],
    ) -> None:
        self._refs = refs
        self._asked = {
            ref: _filled(known[ref])
            if ref in known
            else asyncio.wrap_future(children.wait(ref, None))
            for ref in dict.fromkeys(refs)
        }
        self._looks = looks
        self._look_at = 0.0
        self.checked = asyncio.Event()
        """Set once it is known which of them are unfinished."""

    @property
    def pending(self) -> "set[asyncio.Future[ChildView]]":
        """What is still to be read: the ends of children."""
        return {one for one in self._asked.values() if not one.done()}

    async def unfinished(self) -> Sequence[ChildRef]:
        """Return those that are known to be unfinished: none before the next look is due."""
        if boottime() < self._look_at:
            return ()
        self._look_at = boottime() + self._looks.every
        unfinished = await self._looks.unfinished()
        return [ref for ref, one in self._asked.items() if ref.uid in unfinished and not one.done()]

    def ends(self) -> Sequence[ChildEnd]:
        """Return how each has ended, as often as it is waited for."""
        ends = {ref: end_of(one) for ref, one in self._asked.items()}
        return [ends[ref] for ref in self._refs]

    def read(self) -> Mapping[ChildRef, ChildView]:
        """Return the ends that have been read so far."""
        asked = self._asked.items()
        done = {ref: one for ref, one in asked if one.done() and not one.cancelled()}
        return {ref: one.result() for ref, one in done.items() if not one.exception()}

    def give_up(self) -> None:
        """Ask for no end any more."""
        for one in self._asked.values():
            give_up(one)


def _filled(view: ChildView) -> "asyncio.Future[ChildView]":
    future: asyncio.Future[ChildView] = asyncio.get_running_loop().create_future()
    future.set_result(view)
    return future


def end_of(asked: "asyncio.Future[ChildView]") -> ChildEnd:
    """Return how a child has ended; raises what a look at it has, but that it was deleted."""
    if asked.cancelled():
        raise AttemptOverError("the attempt is over: its children are not waited for")
    error = asked.exception()
    if isinstance(error, ChildGoneError):
        return error
    return asked.result()


def give_up(asked: "asyncio.Future[Any]") -> None:
    """Stop asking, and look at an error that nobody is told."""
    asked.cancel()
    if asked.done() and not asked.cancelled():
        asked.exception()
