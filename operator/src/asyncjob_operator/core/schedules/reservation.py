"""The reservation of runs: only the operator that holds it creates them, and only for a while.

A holder creates for `CREATE_WINDOW_SECONDS` after it sent the write that gave it the reservation,
and each request ends within `REQUEST_TIMEOUT_SECONDS`. Another takes over no sooner than
`TAKEOVER_DELAY_SECONDS` after it first saw the reservation as it is. That is longer than window and
request together, so even a holder that was frozen in between creates no run that another operator
may have created. No two clocks are compared.
"""

from collections.abc import Sequence
from typing import Final

from asyncjob_operator.core.now import Now
from asyncjob_operator.core.schedules.snapshot import (
    CreateRuns,
    CronJobHold,
    CronJobSnapshot,
    CronStatusFields,
    StepResult,
    WriteStatus,
)
from asyncjob_operator.core.schedules.view import Run, runs_to_json

CREATE_WINDOW_SECONDS: Final = 5.0
REQUEST_TIMEOUT_SECONDS: Final = 5.0
TAKEOVER_DELAY_SECONDS: Final = 15.0
"""The delay is window and timeout together and half as much again. A longer one would only have
runs start later after an operator was lost. Window and timeout are chosen, not measured: a create
is answered in milliseconds, and what the window leaves is created under the next reservation."""

MAX_CLAIMS: Final = 2_147_483_647
"""The schema's maximum; counting then starts again, as the number only tells renewals apart."""

MAX_RESERVED_RUNS: Final = 2000
"""Runs that the schema allows in one reservation."""


def reservation_fields(snapshot: CronJobSnapshot, runs: Sequence[Run]) -> CronStatusFields:
    """Return the fields of a write that reserves these runs, and no others, for this operator."""
    by = snapshot.identity[:256]
    return {
        "claims": snapshot.cron.claims % MAX_CLAIMS + 1,
        "reserved": {"by": by, "runs": runs_to_json(runs)},
    }


def take_over(snapshot: CronJobSnapshot, now: Now) -> StepResult:
    """Take over another operator's reservation once that cannot be acting on it any more."""
    reserved = snapshot.cron.reserved
    if reserved is None or reserved.by == snapshot.identity[:256]:
        return None
    free_at = snapshot.reservation_observed_at + TAKEOVER_DELAY_SECONDS
    if now.monotonic < free_at:
        return CronJobHold(free_at)
    return WriteStatus(
        "take-over", reservation_fields(snapshot, snapshot.pending_runs), reserves=True
    )


def may_create(reserved_at: float | None, now: float) -> bool:
    """Return whether the holder of a reservation may still create."""
    return reserved_at is not None and now - reserved_at < CREATE_WINDOW_SECONDS


def with_fresh_reservation(snapshot: CronJobSnapshot, now: Now, effect: CreateRuns) -> StepResult:
    """Return the effect, or the write that first renews the reservation for it."""
    if may_create(snapshot.reserved_at, now.monotonic):
        return effect
    fields = reservation_fields(snapshot, snapshot.pending_runs)
    return WriteStatus("renew", fields, reserves=True, needs_fresh_list=effect.needs_fresh_list)
