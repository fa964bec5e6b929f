"""How long to wait after failures in a row. Pure but for chance."""

import random
from typing import Final

_MAX_DOUBLINGS: Final = 30
"""Far beyond any cap, and far from what a float cannot hold."""


def backoff_delay(failures: int, initial: float, cap: float) -> float:
    """Return the pause after `failures` in a row: `initial` seconds, doubled up to `cap`."""
    return min(initial * 2.0 ** min(max(failures - 1, 0), _MAX_DOUBLINGS), cap)


def with_jitter(seconds: float) -> float:
    """Return the pause cut by chance by up to half, so that processes do not retry in step."""
    return seconds * random.uniform(0.5, 1.0)
