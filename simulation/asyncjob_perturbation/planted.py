"""Bugs that only an API server shows that lags, planted in a part for tests of the perturbation.

In virtual time all bugs are those of the simulation, which may be planted here as well.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final
from unittest.mock import patch

from asyncjob_simulation.mutations import by_name
from asyncjob_worker.claiming.claimer import Claimer


def lost_claims_for_good() -> AbstractContextManager[object]:
    """Have a worker never try a job again that was not as it was shown when it claimed it.

    It has to do so where another worker was quicker, or where it was shown the past. The job may
    be queued again later, and then may well be its own.
    """
    claim = Claimer.claim
    lost: set[str] = set()

    async def claim_once(self: Any, candidate: Any) -> Any:
        if candidate.name in lost:
            return None
        held = await claim(self, candidate)
        if held is None:
            lost.add(candidate.name)
        return held

    return patch.object(Claimer, "claim", claim_once)


_PLANTS: Final[dict[str, Callable[[], AbstractContextManager[object]]]] = {
    "lost claims for good": lost_claims_for_good,
}


def plant(name: str) -> AbstractContextManager[object]:
    """Plant a bug in this process, one of these or of the simulation's."""
    return _PLANTS[name]() if name in _PLANTS else by_name(name).plant()
