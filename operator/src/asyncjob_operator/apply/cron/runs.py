"""Creates the runs a reservation names, for as long as it may."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from asyncjob.errors import (
    AlreadyExistsError,
    InvalidError,
    ObjectNotFoundError,
    TooLargeError,
    UnknownOutcomeError,
)
from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.schedules import CronReason
from asyncjob.names import JOBS, collection_path, job_path
from asyncjob_operator.core.cron.child import is_job_of_run, run_body
from asyncjob_operator.core.cron.claim import REQUEST_TIMEOUT_SECONDS
from asyncjob_operator.core.cron.view import CronJobView, Run

_REQUEST_PARAMS: Final = {"timeout": f"{REQUEST_TIMEOUT_SECONDS:.0f}s"}
"""The API server itself is to give up a request that nobody waits for any more."""


@dataclass(frozen=True, slots=True)
class RefusedRun:
    """A run that cannot be created, whoever tries."""

    run: Run
    reason: CronReason
    message: str


class RunCreator:
    """`is_allowed` is asked right before each request.

    `on_created` takes each run that there is now.
    """

    def __init__(
        self,
        session: KubeSession,
        is_allowed: Callable[[str], bool],
        on_created: Callable[[str, Run, JsonObject | None], None],
    ) -> None:
        self._session = session
        self._is_allowed = is_allowed
        self._on_created = on_created

    async def create(
        self, cron: CronJobView, obj: JsonObject, runs: tuple[Run, ...]
    ) -> RefusedRun | None:
        """Create in order; return the first that cannot be, or None. Raises what a request does."""
        for run in runs:
            if not self._is_allowed(cron.uid):
                return None
            refused = await self._create(cron, obj, run)
            if refused:
                return refused
        return None

    async def find_existing(self, cron: CronJobView, runs: tuple[Run, ...]) -> bool:
        """Return whether any of the runs exists after all: a creation may have gone unanswered."""
        found = False
        for run in runs:
            try:
                there = await self._session.get(job_path(cron.namespace, run.name))
            except ObjectNotFoundError:
                continue
            if is_job_of_run(there, cron, run):
                self._on_created(cron.uid, run, there)
                found = True
        return found

    async def _create(self, cron: CronJobView, obj: JsonObject, run: Run) -> RefusedRun | None:
        try:
            created = await self._post(cron, run_body(cron, obj, run))
        except AlreadyExistsError:
            return await self._adopt_existing(cron, run)
        except (InvalidError, TooLargeError) as error:
            return RefusedRun(run, CronReason.JOB_REFUSED, str(error))
        self._on_created(cron.uid, run, created)
        return None

    async def _post(self, cron: CronJobView, body: JsonObject) -> JsonObject:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
                return await self._session.create(
                    collection_path(cron.namespace, JOBS), body, _REQUEST_PARAMS
                )
        except TimeoutError as error:
            raise UnknownOutcomeError("no answer to the creation of a run in time") from error

    async def _adopt_existing(self, cron: CronJobView, run: Run) -> RefusedRun | None:
        try:
            there = await self._session.get(job_path(cron.namespace, run.name))
        except ObjectNotFoundError:
            # Gone in between: it has been created, and once is enough.
            self._on_created(cron.uid, run, None)
            return None
        if not is_job_of_run(there, cron, run):
            return RefusedRun(run, CronReason.NAME_TAKEN, "another job has its name")
        self._on_created(cron.uid, run, there)
        return None
