"""What jobs and arrays go through: all scenarios, by the part of a life that they are about."""

from contract.scenarios import (
    arrays,
    controlling,
    families,
    handling,
    refusing,
    signals,
    suffering,
    timing,
)
from contract.scenarios.base import CRASHING, SCENARIOS, Scenario

__all__ = [
    "CRASHING",
    "SCENARIOS",
    "Scenario",
    "arrays",
    "controlling",
    "families",
    "handling",
    "refusing",
    "signals",
    "suffering",
    "timing",
]
