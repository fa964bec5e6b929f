"""Writes that the API server has to refuse, each of which breaks one rule and no other."""

from support.forbidden.arrays import ARRAYS
from support.forbidden.case import Case, ForbiddenSetup
from support.forbidden.claims import CLAIMS
from support.forbidden.leases import LEASES
from support.forbidden.moves import MOVES
from support.forbidden.outcomes import OUTCOMES, REPORTS
from support.forbidden.owners import OWNERS
from support.forbidden.removals import REMOVALS
from support.forbidden.settings import CRONS, SETTINGS
from support.forbidden.shapes import SHAPES
from support.forbidden.signals import SIGNALS
from support.forbidden.sources import SOURCES
from support.forbidden.specs import SPECS
from support.forbidden.steps import PARKS, STEPS

WORKERS: tuple[Case, ...] = (*CLAIMS, *REPORTS, *OUTCOMES, *OWNERS, *LEASES)
"""With a worker's token."""

OTHERS: tuple[Case, ...] = (
    *(*MOVES, *SPECS, *REMOVALS, *SETTINGS, *SOURCES, *SHAPES, *CRONS, *STEPS, *PARKS),
    *(*ARRAYS, *SIGNALS),
)
"""With the operator's, or a user's; steps with either."""

CASES: tuple[Case, ...] = (*WORKERS, *OTHERS)

__all__ = ["CASES", "OTHERS", "WORKERS", "Case", "ForbiddenSetup"]
