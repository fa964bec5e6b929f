"""Over which values each curve goes, at full size and small."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges:
    """Points of all curves. `jobs` go through at each point, after a warm-up."""

    jobs: int
    warm_up: int
    objects: tuple[int, ...]
    workers: tuple[int, ...]
    payload_bytes: tuple[int, ...]
    long_jobs: tuple[int, ...]
    long_seconds: float
    retained: tuple[int, ...]


FULL: Final = Ranges(
    jobs=1000,
    warm_up=200,
    objects=(1000, 10_000, 50_000, 100_000),
    workers=(1, 2, 4, 8, 16, 32, 64),
    payload_bytes=(100, 1024, 4096, 16_384, 102_400),
    long_jobs=(1, 10, 100, 300, 1000),
    long_seconds=30.0,
    retained=(200, 500),
)

SMALL: Final = Ranges(
    jobs=100,
    warm_up=20,
    objects=(100, 500),
    workers=(1, 2, 4),
    payload_bytes=(100, 102_400),
    long_jobs=(1, 20),
    long_seconds=6.0,
    retained=(20, 50),
)

RANGES: Final = {"full": FULL, "small": SMALL}
"""By the name of the scale."""
