"""What jobs go through: all scenarios, by the part of a life that they are about."""

from contract.scenarios import families, handling, refusing, suffering, timing, wishing
from contract.scenarios.base import CRASHING, SCENARIOS, Scenario

__all__ = [
    "CRASHING",
    "SCENARIOS",
    "Scenario",
    "families",
    "handling",
    "refusing",
    "suffering",
    "timing",
    "wishing",
]
