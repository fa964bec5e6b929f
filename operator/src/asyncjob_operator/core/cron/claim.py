"""The reservation: of all operators only its holder creates the runs in it, and only for a while.

A holder creates for `CREATE_SECONDS` after it sent the write that gave it the reservation, and each
request ends within `REQUEST_SECONDS`. Another takes over no sooner than `TAKEOVER_SECONDS` after it
first saw the reservation as it is. So even a holder that was frozen in between creates nothing for
which somebody else may have acted. No two clocks are compared.
"""

from collections.abc import Sequence
from typing import Final

from asyncjob_operator.core.cron.decision import Create, Fields, Hold, Verdict, Write
from asyncjob_operator.core.cron.snapshot import CronSnapshot
from asyncjob_operator.core.cron.view import Run, write_runs
from asyncjob_operator.core.moment import Moment

CREATE_SECONDS: Final = 5.0
REQUEST_SECONDS: Final = 5.0
TAKEOVER_SECONDS: Final = 15.0
MAX_CLAIMS: Final = 2_147_483_647
"""The schema's bound; after it counting begins anew, as the number only tells renewals apart."""

MAX_RUNS: Final = 2000
"""As many as a reservation takes."""


def reserve(snapshot: CronSnapshot, runs: Sequence[Run]) -> Fields:
    """Return the fields of a write that makes these runs, and no others, ours to create."""
    by = snapshot.me[:256]
    return {
        "claims": snapshot.cron.claims % MAX_CLAIMS + 1,
        "reserved": {"by": by, "runs": write_runs(runs)},
    }


def take_over(snapshot: CronSnapshot, now: Moment) -> Verdict:
    """Leave another operator's reservation alone until it cannot be acting on it any more."""
    reserved = snapshot.cron.reserved
    if reserved is None or reserved.by == snapshot.me[:256]:
        return None
    free_at = snapshot.claim_seen_at + TAKEOVER_SECONDS
    if now.monotonic < free_at:
        return Hold(free_at)
    return Write("take-over", reserve(snapshot, snapshot.pending), claims=True)


def may_create(sent_at: float | None, now: float) -> bool:
    """Return whether the holder of a reservation may still create."""
    return sent_at is not None and now - sent_at < CREATE_SECONDS


def renewed_or(snapshot: CronSnapshot, now: Moment, effect: Create) -> Verdict:
    """Return the effect, or the write that gives it time enough again."""
    if may_create(snapshot.claim_sent_at, now.monotonic):
        return effect
    fields = reserve(snapshot, snapshot.pending)
    return Write("renew", fields, claims=True, rests=effect.rests)
