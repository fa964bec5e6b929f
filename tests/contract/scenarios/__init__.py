"""What jobs go through: all scenarios, by the part of a life that they are about."""

from contract.scenarios import controlling, families, handling, refusing, suffering, timing
from contract.scenarios.base import CRASHING, SCENARIOS, Scenario

__all__ = [
    "CRASHING",
    "SCENARIOS",
    "Scenario",
    "controlling",
    "families",
    "handling",
    "refusing",
    "suffering",
    "timing",
]
