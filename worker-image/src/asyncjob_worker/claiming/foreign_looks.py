"""Looks at the jobs that others watch, by a worker with an idle slot.

A look is a list. Where jobs are many it is a watch: that tells what changes, where lists would
carry all of them again and again.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog

from asyncjob.errors import ApiError
from asyncjob.kube.paging import PageTooLargeError
from asyncjob_worker.claiming.backlog import Backlog
from asyncjob_worker.claiming.job_look import JobLook
from asyncjob_worker.claiming.selection import JobSelection
from asyncjob_worker.claiming.watcher import QueuedJobWatcher
from asyncjob_worker.clock import boottime

log = structlog.get_logger()

WATCH_SECONDS: Final = 1.0
"""How long a watch may take to tell of a job."""

LOOKING_SECONDS: Final = 30.0
"""After this long a look ends although it knows of jobs: they may be none that can be claimed."""

MANY_JOBS: Final = 100
"""A look that is told of more, all of other types, costs enough for the next one to wait longer."""

WATCHES: Final = 10
"""How many looks are watches after a list was too large: to find that out costs as much again."""


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
        self._watches_left = 0

    def relist(self) -> None:
        """Bring in all jobs of the present look again: the backlog has forgotten them."""
        if self._current is not None:
            self._current.relist()

    async def look_at(self, selection: JobSelection, every: float) -> bool:
        """Look once in `every` seconds for as long as jobs are known there.

        Returns whether there were only jobs of other types, and many of them. Raises what a request
        raises, but not once jobs are known: they are kept until the API server answers again.
        """
        if not self._watches_left:
            try:
                return await self._list(selection, every)
            except PageTooLargeError:
                self._watches_left = WATCHES
        self._watches_left -= 1
        return await self._watch(selection, every)

    async def _list(self, selection: JobSelection, every: float) -> bool:
        look = self._current = self._new_look(selection)
        ends_at = boottime() + LOOKING_SECONDS
        try:
            await look.refresh()
            while self._backlog.holds(selection) and boottime() < ends_at:
                await asyncio.sleep(every)
                await self._refresh_again(look)
        finally:
            self._current = None
            self._backlog.drop_selection(selection)
        return look.feed.passed_over > MANY_JOBS

    async def _refresh_again(self, look: JobLook) -> None:
        try:
            await look.refresh()
        except PageTooLargeError:
            raise
        except ApiError as error:
            log.info("cannot look again at jobs that others watch", error=str(error))

    async def _watch(self, selection: JobSelection, every: float) -> bool:
        watch = self._current = self._new_watch(selection)
        running = asyncio.ensure_future(watch.run())
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(WATCH_SECONDS):
                    await watch.synced.wait()
            ends_at = boottime() + LOOKING_SECONDS
            while self._backlog.holds(selection) and boottime() < ends_at:  # noqa: ASYNC110  # seldom
                await asyncio.sleep(every)
            if running.done():
                running.result()
            if watch.error is not None and not watch.is_watching:
                raise watch.error
        finally:
            self._current = None
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            self._backlog.drop_selection(selection)
        return watch.feed.passed_over > MANY_JOBS
