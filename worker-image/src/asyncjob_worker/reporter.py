"""Writes a job's outcome: one write, tried until it is stored or the job is no longer ours."""

import asyncio
import re
from collections.abc import Awaitable, Callable

import structlog

from asyncjob.errors import ApiError, InvalidError, TooLargeError
from asyncjob.json_types import text
from asyncjob.kube import KubeSession
from asyncjob.kube.backoff import Backoff
from asyncjob.lifecycle.move import Move
from asyncjob_worker.bodies import outcome_body
from asyncjob_worker.clock import lease_seconds
from asyncjob_worker.held import HeldJob
from asyncjob_worker.standing import Look, Standing, look_at

log = structlog.get_logger()

MAX_REFUSALS = 4
"""An outcome that the API server refuses so often while the job is ours is left to the operator."""

Refused = Callable[[HeldJob, Move, ApiError], Move]
"""Returns the dead letter of a job whose result the store can never take."""

_ABOUT_RESULT = re.compile(r"\bresult\b")

_MARKS = ("phase", "lastTransitionTime")
"""By these an outcome is known as our own, not another's decision on the same claim."""


class Reporter:
    """Reports outcomes for one worker process."""

    def __init__(
        self,
        session: KubeSession,
        refused: Refused,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._session = session
        self._refused = refused
        self._pause = pause

    async def report(self, held: HeldJob, move: Move) -> Move | None:
        """Store the outcome; returns what is stored, which may be its refusal.

        None means that another claim or the operator decided meanwhile, which is logged as fenced,
        or that the API server refuses every form of it.
        """
        report = _Report(self._session, held, move, self._refused)
        backoff = Backoff(initial=0.1, cap=5.0)
        while (stored := await report.attempt()) is None:
            await self._pause(backoff.pause())
        return report.move if stored else None


class _Report:
    """One outcome on its way."""

    def __init__(self, session: KubeSession, held: HeldJob, move: Move, refused: Refused) -> None:
        self._session = session
        self._held = held
        self._move = move
        self._refused = refused
        self._status = held.status
        self._with_draft = True
        self._refusals = 0

    @property
    def move(self) -> Move:
        """What is being reported."""
        return self._move

    async def attempt(self) -> bool | None:
        """Try once; returns whether it is stored, None if that is open."""
        if lease_seconds() > self._held.ends_at:
            # What may be another's by now, e.g. after this process slept, is looked at first.
            look = await look_at(self._session, self._held)
            known = self._judge(look)
            if known is not None or look.standing is Standing.UNKNOWN:
                return known
        return await self._write()

    async def _write(self) -> bool | None:
        draft = self._held.unsaved() if self._with_draft else None
        body = outcome_body(self._held, self._move, self._status, draft)
        try:
            await self._session.json_patch(self._held.status_path, body)
        except ApiError as error:
            return await self._after_error(error)
        return True

    async def _after_error(self, error: ApiError) -> bool | None:
        look = await look_at(self._session, self._held)
        known = self._judge(look)
        if known is not None:
            return known
        if look.standing is Standing.HELD and isinstance(error, InvalidError | TooLargeError):
            return self._give_way(error)
        log.warning("outcome not stored yet", job=self._held.job.name, error=str(error))
        return None

    def _judge(self, look: Look) -> bool | None:
        """Return what a fresh read says of our outcome, None if it can still be written."""
        match look.standing:
            case Standing.HELD:
                self._status = look.status
                return None
            case Standing.UNKNOWN:
                return None
            case Standing.LEFT if self._is_ours(look):
                return True
            case _:
                found = text(look.status, "phase") or "gone"
                log.warning(
                    "fenced: the job is no longer ours, outcome not written",
                    job=self._held.job.name,
                    outcome=self._move.target.value,
                    found=found,
                )
                return False

    def _is_ours(self, look: Look) -> bool:
        fields = self._move.fields
        return all(text(look.status, name) == fields[name] for name in _MARKS)

    def _give_way(self, error: ApiError) -> bool | None:
        """Leave out, or replace, what the API server refuses although the job is ours."""
        self._refusals += 1
        log.warning("outcome refused", job=self._held.job.name, error=str(error))
        if self._refusals >= MAX_REFUSALS:
            log.error(
                "outcome refused for good: the job is left to the operator",
                job=self._held.job.name,
                outcome=self._move.target.value,
                error=str(error),
            )
            return False
        if self._concerns_result(error):
            self._move = self._refused(self._held, self._move, error)
        elif isinstance(error, TooLargeError) or self._refusals > 1:
            self._with_draft = False
        return None

    def _concerns_result(self, error: ApiError) -> bool:
        if self._move.fields.get("result") is None:
            return False
        if isinstance(error, TooLargeError):
            return not self._with_draft or self._held.unsaved() is None
        return bool(_ABOUT_RESULT.search(str(error)))
