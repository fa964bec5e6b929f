"""Looks at the jobs that others watch, by a worker with an idle slot.

A look is a list. Where jobs are many it is a watch: that tells what changes, where lists would
carry all of them again and again.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from asyncjob.kube.paging import PageTooLargeError
from asyncjob_worker.claiming.backlog import Backlog
from asyncjob_worker.claiming.job_look import JobLook
from asyncjob_worker.claiming.selection import JobSelection
from asyncjob_worker.claiming.watcher import QueuedJobWatcher
from asyncjob_worker.clock import boottime

LOOK_SECONDS: Final = 1.0
"""Between two lists of one look, and how long a watch may take to tell of a job."""

LOOKING_SECONDS: Final = 30.0
"""After this long a look ends although it knows of jobs: they may be none that can be claimed."""

MANY_JOBS: Final = 100
"""A watch that tells of more is followed by another watch. If all were of other types, it has cost
enough for the next look to wait longer."""


class ForeignLooks:
    """Looks of one worker. `look` makes one of lists at a part of the jobs, `watch` one watch."""

    def __init__(
        self,
        backlog: Backlog,
        *,
        look: Callable[[JobSelection], JobLook],
        watch: Callable[[JobSelection], QueuedJobWatcher],
    ) -> None:
        self._backlog = backlog
        self._new_look = look
        self._new_watch = watch
        self._current: JobLook | QueuedJobWatcher | None = None
        self._are_many = False

    def relist(self) -> None:
        """Bring in all jobs of the present look again: the backlog has forgotten them."""
        if self._current is not None:
            self._current.relist()

    async def look_at(self, selection: JobSelection) -> bool:
        """Look for as long as jobs are known there. Raises what a request raises.

        Returns whether there were only jobs of other types, and many of them.
        """
        if not self._are_many:
            try:
                return await self._list(selection)
            except PageTooLargeError:
                self._are_many = True
        return await self._watch(selection)

    async def _list(self, selection: JobSelection) -> bool:
        look = self._current = self._new_look(selection)
        ends_at = boottime() + LOOKING_SECONDS
        try:
            await look.refresh()
            while self._backlog.holds(selection) and boottime() < ends_at:
                await asyncio.sleep(LOOK_SECONDS)
                await look.refresh()
        finally:
            self._current = None
            self._backlog.drop_selection(selection)
        return look.feed.passed_over > MANY_JOBS

    async def _watch(self, selection: JobSelection) -> bool:
        watch = self._current = self._new_watch(selection)
        running = asyncio.ensure_future(watch.run())
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await watch.synced.wait()
            ends_at = boottime() + LOOKING_SECONDS
            while self._backlog.holds(selection) and boottime() < ends_at:  # noqa: ASYNC110  # seldom
                await asyncio.sleep(LOOK_SECONDS)
            if running.done():
                running.result()
            if watch.error is not None:
                raise watch.error
        finally:
            self._current = None
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            self._backlog.drop_selection(selection)
        self._are_many = watch.feed.told > MANY_JOBS
        return watch.feed.passed_over > MANY_JOBS
