"""What a claim sets, and what only a claim sets."""

from typing import Final

from asyncjob.schema.laws.expressions import unchanged
from asyncjob.schema.laws.law import Rule, StatusWrite


def _only_on_claim(field: str, on_claim: str) -> dict[StatusWrite, str]:
    return {
        StatusWrite.CLAIM: on_claim,
        StatusWrite.PHASE_CHANGE: unchanged(field),
        StatusWrite.SAME_PHASE: unchanged(field),
    }


CLAIM_ATTEMPT: Final = Rule(
    "claim.attempt",
    "attempt grows by exactly one at a claim, and never changes else.",
    _only_on_claim("attempt", "now.attempt == was.attempt + 1"),
    "'attempt cannot go from ' + string(was.attempt) + ' to ' + string(now.attempt)"
    " + ' with the phase going from ' + was.phase + ' to ' + now.phase"
    " + ': it grows by exactly one at a claim, and never changes else'",
)
CLAIM_ID: Final = Rule(
    "claim.id",
    "claim is new at each claim, and never changes else.",
    _only_on_claim("claim", "now.?claim.orValue('') != '' && now.?claim != was.?claim"),
    "'claim cannot go from ' + was.?claim.orValue('(none)') + ' to '"
    " + now.?claim.orValue('(none)') + ' with the phase going from ' + was.phase + ' to '"
    " + now.phase + ': it is new at each claim, and never changes else'",
)
CLAIM_START_TIME: Final = Rule(
    "claim.start-time",
    "A claim sets startTime, and nothing else changes it.",
    _only_on_claim("startTime", "has(now.startTime)"),
)
CLAIM_FIRST_START_TIME: Final = Rule(
    "claim.first-start-time",
    "The first claim sets firstStartTime, and nothing changes it afterwards.",
    _only_on_claim(
        "firstStartTime",
        f"has(was.firstStartTime) ? {unchanged('firstStartTime')} : has(now.firstStartTime)",
    ),
)
CLAIM_EFFECTIVE: Final = Rule(
    "claim.effective",
    "A claim sets effective, and nothing else changes it.",
    _only_on_claim("effective", "has(now.effective)"),
)
CLAIM_ADMITTED: Final = Rule(
    "claim.admitted",
    "A job is admitted as, or while, it is Queued; it stays so through the claim and while it "
    "runs, and has lost it on leaving Running and on a redrive.",
    {
        StatusWrite.CLAIM: unchanged("admitted"),
        StatusWrite.PHASE_CHANGE: "!has(now.admitted)"
        " || (now.phase == 'Queued' && !(was.phase in ['Running', 'DeadLetter']))",
        StatusWrite.SAME_PHASE: f"now.phase == 'Queued' || {unchanged('admitted')}",
    },
)
