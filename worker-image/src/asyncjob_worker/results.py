"""Turns what a handler returns into the outcome to report: where the result is kept, or why not."""

from asyncjob.app import Handler, outcomes
from asyncjob.lifecycle.move import Move
from asyncjob_worker.clock import now_text
from asyncjob_worker.held import HeldJob
from asyncjob_worker.settings import Settings


class Results:
    """Keeps results for one worker process."""

    def __init__(self, settings: Settings) -> None:
        self._max_bytes = settings.max_free_json

    async def keep(self, held: HeldJob, handler: Handler, result: object) -> Move:
        """Return success, or the refusal of a result that cannot be kept."""
        limit = self._max_bytes
        return outcomes.succeeded(held.job, handler, result, max_bytes=limit, now=now_text())
