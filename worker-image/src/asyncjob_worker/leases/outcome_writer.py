"""Writes a job's outcome: one write, retried until it is stored or given up.

It is given up when the job is no longer ours, or after `MAX_OUTCOME_REFUSALS` refusals.
Whether a failed write was stored all the same is decided by reading the job again.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from enum import Enum, auto

import structlog

from asyncjob.errors import ApiError, InvalidError, TooLargeError
from asyncjob.json_types import Json, as_object, items, text
from asyncjob.kube import KubeSession
from asyncjob.kube.pacing import ExponentialBackoff
from asyncjob.kube.session import METADATA_TYPE
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob_worker.clock import boottime
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.ownership import Ownership, OwnershipCheck, check_ownership
from asyncjob_worker.leases.patches import outcome_patch

log = structlog.get_logger()

MAX_OUTCOME_REFUSALS = 4
"""After this many refusals while the job is ours the outcome is given up and the job left to the
operator."""

OnResultRefused = Callable[[HeldJob, PhaseChange, ApiError], PhaseChange]
"""Returns the dead-letter outcome of a job whose result the API server can never store."""

_ABOUT_RESULT = re.compile(r"\bresult\b")

_OUTCOME_FIELDS = ("phase", "lastTransitionTime")
"""These fields show that a stored outcome is ours, not the operator's for the same claim."""


class WriteState(Enum):
    """What is known of an outcome after a try to write it."""

    STORED = auto()
    """The job holds our outcome."""

    GIVEN_UP = auto()
    """It will not be written: the job is no longer ours, or every form of it was refused."""

    PENDING = auto()
    """It has to be tried again."""


class OutcomeWriter:
    """Writes outcomes for one worker process."""

    def __init__(
        self,
        session: KubeSession,
        on_result_refused: OnResultRefused,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._session = session
        self._on_result_refused = on_result_refused
        self._pause = pause

    async def write(self, held: HeldJob, outcome: PhaseChange) -> PhaseChange | None:
        """Store the outcome and return what is stored, which may be that its result was refused.

        Returns None if another claim or the operator has decided meanwhile, which is logged as
        fenced, or if the API server refuses every form of the outcome.
        """
        pending = _OutcomeWrite(self._session, held, outcome, self._on_result_refused)
        backoff = ExponentialBackoff(initial=0.1, cap=5.0)
        while (state := await pending.try_once()) is WriteState.PENDING:
            await self._pause(backoff.next_delay())
        return pending.outcome if state is WriteState.STORED else None


class _OutcomeWrite:
    """One outcome that is being written."""

    def __init__(
        self,
        session: KubeSession,
        held: HeldJob,
        outcome: PhaseChange,
        on_result_refused: OnResultRefused,
    ) -> None:
        self._session = session
        self._held = held
        self._outcome = outcome
        self._on_result_refused = on_result_refused
        self._status = held.status
        self._with_report = True
        self._refusals = 0

    @property
    def outcome(self) -> PhaseChange:
        """The outcome as it is written, possibly replaced by its refusal."""
        return self._outcome

    async def try_once(self) -> WriteState:
        """Try once to write the outcome."""
        if boottime() > self._held.lease_expires_at:
            # The job may be another worker's by now, e.g. after this process slept: read it first.
            check = await check_ownership(self._session, self._held)
            state = self._evaluate(check)
            if state is not WriteState.PENDING or check.ownership is Ownership.UNKNOWN:
                return state
        return await self._write()

    async def _write(self) -> WriteState:
        report = self._held.unsaved_report() if self._with_report else None
        body = outcome_patch(self._held, self._outcome, self._status, report)
        try:
            await self._session.json_patch(self._held.status_path, body, accept=METADATA_TYPE)
        except ApiError as error:
            return await self._after_error(error)
        return WriteState.STORED

    async def _after_error(self, error: ApiError) -> WriteState:
        check = await check_ownership(self._session, self._held)
        state = self._evaluate(check)
        if state is not WriteState.PENDING:
            return state
        if check.ownership is Ownership.HELD and isinstance(error, InvalidError | TooLargeError):
            return self._reduce(error)
        log.warning("outcome not stored yet", job=self._held.job.name, error=str(error))
        return WriteState.PENDING

    def _evaluate(self, check: OwnershipCheck) -> WriteState:
        """Return what a read of the job shows; pending if the outcome can still be written."""
        match check.ownership:
            case Ownership.HELD:
                self._status = check.status
                return WriteState.PENDING
            case Ownership.UNKNOWN:
                return WriteState.PENDING
            case Ownership.LEFT if self._is_ours(check):
                return WriteState.STORED
            case _:
                found = text(check.status, "phase") or "gone"
                log.warning(
                    "fenced: the job is no longer ours, outcome not written",
                    job=self._held.job.name,
                    outcome=self._outcome.target.value,
                    found=found,
                )
                return WriteState.GIVEN_UP

    def _is_ours(self, check: OwnershipCheck) -> bool:
        fields = self._outcome.fields
        return all(text(check.status, name) == fields[name] for name in _OUTCOME_FIELDS)

    def _reduce(self, error: ApiError) -> WriteState:
        """Leave out or replace what the API server refuses although the job is ours.

        After `MAX_OUTCOME_REFUSALS` refusals the outcome is given up.
        """
        self._refusals += 1
        log.warning("outcome refused", job=self._held.job.name, error=str(error))
        if self._refusals >= MAX_OUTCOME_REFUSALS:
            log.error(
                "outcome refused for good: the job is left to the operator",
                job=self._held.job.name,
                outcome=self._outcome.target.value,
                error=str(error),
            )
            return WriteState.GIVEN_UP
        if isinstance(error, TooLargeError) and (lean := _without_schemas(self._outcome)):
            self._outcome = lean
        elif self._concerns_result(error):
            self._outcome = self._on_result_refused(self._held, self._outcome, error)
        elif isinstance(error, TooLargeError) or self._refusals > 1:
            self._with_report = False
        return WriteState.PENDING

    def _concerns_result(self, error: ApiError) -> bool:
        """Return whether the result is refused, or a park for which the job has no room."""
        is_park = self._outcome.fields.get("waiting") is not None
        if is_park and not isinstance(error, TooLargeError):
            return False
        if self._outcome.fields.get("result") is None and not is_park:
            return False
        if isinstance(error, TooLargeError):
            return not self._with_report or self._held.unsaved_report() is None
        return bool(_ABOUT_RESULT.search(str(error)))


def _without_schemas(outcome: PhaseChange) -> PhaseChange | None:
    """Return a park that does not show what payloads its signals take; None if it shows none."""
    waiting = items(outcome.fields, "waiting") if outcome.fields.get("waiting") else ()
    lean: list[Json] = [
        {name: value for name, value in as_object(one).items() if name != "payloadSchema"}
        for one in waiting
    ]
    if lean == [*waiting]:
        return None
    return replace(outcome, fields={**outcome.fields, "waiting": lean})
