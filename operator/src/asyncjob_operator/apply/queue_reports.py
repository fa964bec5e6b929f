"""Writes the numbers of each AsyncQueue into its status, so that `kubectl get` shows them."""

from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from asyncjob.errors import ApiError, NotFoundError
from asyncjob.json_types import Json
from asyncjob.kube import KubeSession
from asyncjob.names import queue_status_path
from asyncjob_operator.apply.patience import LONGEST_REFUSED, Patience
from asyncjob_operator.telemetry.containment import Containment, Doing, Kind, Subject

log = structlog.get_logger()

INTERVAL: Final = 5.0
News = list[tuple[tuple[str, str], dict[str, Json]]]
"""Namespace and name of a queue, and the fields of its status that are not as it says."""


class QueueReports:
    """Writes what `survey` finds to be news.

    A queue whose status cannot be written is left alone for longer each time, and that is said
    once: what the API server refuses today it refuses in five seconds, too.
    """

    def __init__(
        self,
        session: KubeSession,
        survey: Callable[[], Awaitable[News]],
        leads: Callable[[], bool],
        containment: Containment,
        clock: Callable[[], float],
    ) -> None:
        self._session = session
        self._survey = survey
        self._leads = leads
        self._containment = containment
        self._clock = clock
        self._patience = Patience(INTERVAL, LONGEST_REFUSED)
        self._rests_until: dict[str, float] = {}

    async def write(self, went_on: Callable[[], None] = lambda: None) -> int:
        """Write what is news and return how many queues that were; `went_on` is for each."""
        now = self._clock()
        self._rests_until = {key: at for key, at in self._rests_until.items() if at > now}
        written = 0
        for queue, fields in await self._survey():
            went_on()
            if self._leads() and "/".join(queue) not in self._rests_until:
                with self._containment.guard(Subject(Kind.QUEUE, *queue), Doing.WRITE):
                    written += await self._write_one(queue, fields)
        return written

    async def _write_one(self, queue: tuple[str, str], fields: dict[str, Json]) -> bool:
        key = "/".join(queue)
        try:
            await self._session.merge_patch(queue_status_path(*queue), {"status": fields})
        except NotFoundError:
            return False
        except ApiError as error:
            pause = self._patience.failed(key)
            self._rests_until[key] = self._clock() + pause
            level = log.warning if self._patience.is_news(key, str(error)) else log.debug
            level("numbers of a queue not written", queue=key, error=str(error), retry_in=pause)
            return False
        self._patience.succeeded(key)
        return True
