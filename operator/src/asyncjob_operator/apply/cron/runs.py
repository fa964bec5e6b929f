"""Creates the runs a reservation names, for as long as it may."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from asyncjob.errors import (
    AlreadyExistsError,
    InvalidError,
    NotFoundError,
    TooLargeError,
    UnknownOutcomeError,
)
from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.schedules import CronReason
from asyncjob.names import JOBS, collection, job_path
from asyncjob_operator.core.cron.child import is_run, run_body
from asyncjob_operator.core.cron.claim import REQUEST_SECONDS
from asyncjob_operator.core.cron.view import CronView, Run

_LIMIT: Final = {"timeout": f"{REQUEST_SECONDS:.0f}s"}
"""The API server itself is to give up a request that nobody waits for any more."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A run that cannot be created, whoever tries."""

    run: Run
    reason: CronReason
    why: str


class Runs:
    """`may` is asked right before each request; `made` takes each run that there is now."""

    def __init__(
        self,
        session: KubeSession,
        may: Callable[[str], bool],
        made: Callable[[str, Run, JsonObject | None], None],
    ) -> None:
        self._session = session
        self._may = may
        self._made = made

    async def create(
        self, cron: CronView, obj: JsonObject, runs: tuple[Run, ...]
    ) -> Refused | None:
        """Create in order; return the first that cannot be, or None. Raises what a request does."""
        for run in runs:
            if not self._may(cron.uid):
                return None
            refused = await self._create(cron, obj, run)
            if refused:
                return refused
        return None

    async def find(self, cron: CronView, runs: tuple[Run, ...]) -> bool:
        """Return whether any of the runs exists after all: a creation may have gone unanswered."""
        found = False
        for run in runs:
            try:
                there = await self._session.get(job_path(cron.namespace, run.name))
            except NotFoundError:
                continue
            if is_run(there, cron, run):
                self._made(cron.uid, run, there)
                found = True
        return found

    async def _create(self, cron: CronView, obj: JsonObject, run: Run) -> Refused | None:
        try:
            created = await self._post(cron, run_body(cron, obj, run))
        except AlreadyExistsError:
            return await self._existing(cron, run)
        except (InvalidError, TooLargeError) as error:
            return Refused(run, CronReason.JOB_REFUSED, str(error))
        self._made(cron.uid, run, created)
        return None

    async def _post(self, cron: CronView, body: JsonObject) -> JsonObject:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                return await self._session.create(collection(cron.namespace, JOBS), body, _LIMIT)
        except TimeoutError as error:
            raise UnknownOutcomeError("no answer to the creation of a run in time") from error

    async def _existing(self, cron: CronView, run: Run) -> Refused | None:
        try:
            there = await self._session.get(job_path(cron.namespace, run.name))
        except NotFoundError:
            # Gone in between: it has been created, and once is enough.
            self._made(cron.uid, run, None)
            return None
        if not is_run(there, cron, run):
            return Refused(run, CronReason.NAME_TAKEN, "another job has its name")
        self._made(cron.uid, run, there)
        return None
