"""What a claim sets, and what only a claim sets."""

from typing import Final

from asyncjob.schema.laws.expressions import same
from asyncjob.schema.laws.law import Law, Write


def _only_a_claim(field: str, sets: str) -> dict[Write, str]:
    return {Write.CLAIM: sets, Write.MOVE: same(field), Write.STAY: same(field)}


ATTEMPT: Final = Law(
    "claim.attempt",
    "attempt grows by exactly one at a claim, and never changes else.",
    _only_a_claim("attempt", "now.attempt == was.attempt + 1"),
    "'attempt cannot go from ' + string(was.attempt) + ' to ' + string(now.attempt)"
    " + ' with the phase going from ' + was.phase + ' to ' + now.phase"
    " + ': it grows by exactly one at a claim, and never changes else'",
)
CLAIM: Final = Law(
    "claim.id",
    "claim is new at each claim, and never changes else.",
    _only_a_claim("claim", "now.?claim.orValue('') != '' && now.?claim != was.?claim"),
    "'claim cannot go from ' + was.?claim.orValue('(none)') + ' to '"
    " + now.?claim.orValue('(none)') + ' with the phase going from ' + was.phase + ' to '"
    " + now.phase + ': it is new at each claim, and never changes else'",
)
START_TIME: Final = Law(
    "claim.start-time",
    "A claim sets startTime, and nothing else changes it.",
    _only_a_claim("startTime", "has(now.startTime)"),
)
FIRST_START: Final = Law(
    "claim.first-start-time",
    "The first claim sets firstStartTime, and nothing changes it afterwards.",
    _only_a_claim(
        "firstStartTime",
        f"has(was.firstStartTime) ? {same('firstStartTime')} : has(now.firstStartTime)",
    ),
)
EFFECTIVE: Final = Law(
    "claim.effective",
    "A claim sets effective, and nothing else changes it.",
    _only_a_claim("effective", "has(now.effective)"),
)
ADMITTED: Final = Law(
    "claim.admitted",
    "A job is admitted as, or while, it is Queued; it stays so through the claim and while it "
    "runs, and has lost it on leaving Running and on a redrive.",
    {
        Write.CLAIM: same("admitted"),
        Write.MOVE: "!has(now.admitted)"
        " || (now.phase == 'Queued' && !(was.phase in ['Running', 'DeadLetter']))",
        Write.STAY: f"now.phase == 'Queued' || {same('admitted')}",
    },
)
