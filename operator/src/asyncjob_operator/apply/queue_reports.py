"""Writes the numbers of each AsyncQueue into its status, so that `kubectl get` shows them."""

from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from asyncjob.errors import ApiError, NotFoundError
from asyncjob.json_types import Json
from asyncjob.kube import KubeSession
from asyncjob.names import queue_status_path
from asyncjob_operator.telemetry.containment import Containment, Doing, Kind, Subject

log = structlog.get_logger()

INTERVAL: Final = 5.0

News = list[tuple[tuple[str, str], dict[str, Json]]]
"""Namespace and name of a queue, and the fields of its status that are not as it says."""


class QueueReports:
    """Writes what `survey` finds to be news."""

    def __init__(
        self,
        session: KubeSession,
        survey: Callable[[], Awaitable[News]],
        leads: Callable[[], bool],
        containment: Containment,
    ) -> None:
        self._session = session
        self._survey = survey
        self._leads = leads
        self._containment = containment

    async def write(self, went_on: Callable[[], None] = lambda: None) -> int:
        """Write what is news and return how many queues that were; `went_on` is for each."""
        written = 0
        for queue, fields in await self._survey():
            went_on()
            if self._leads():
                with self._containment.guard(Subject(Kind.QUEUE, *queue), Doing.WRITE):
                    written += await self._write_one(queue, fields)
        return written

    async def _write_one(self, queue: tuple[str, str], fields: dict[str, Json]) -> bool:
        try:
            await self._session.merge_patch(queue_status_path(*queue), {"status": fields})
        except NotFoundError:
            return False
        except ApiError as error:
            log.warning("numbers of a queue not written", queue="/".join(queue), error=str(error))
            return False
        return True
