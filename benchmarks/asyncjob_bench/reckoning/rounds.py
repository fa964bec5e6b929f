"""Which part is measured when: interleaved, so that what the machine does meanwhile hits all alike.

Ratios are taken within a round, and their median over the rounds.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

RATIOS: Final[Mapping[str, tuple[str, str]]] = {
    "end_to_end_ratio": ("end_to_end_jobs_s", "raw_ceiling_jobs_s"),
    "native_ratio": ("end_to_end_jobs_s", "native_jobs_s"),
    "raw_native_ratio": ("raw_ceiling_jobs_s", "native_jobs_s"),
    "raw_bare_ratio": ("raw_ceiling_jobs_s", "bare_ceiling_jobs_s"),
    "bare_native_ratio": ("bare_ceiling_jobs_s", "native_jobs_s"),
    "peer_postgres_ratio": ("end_to_end_jobs_s", "peer_postgres_jobs_s"),
    "pickup_p50_ratio": ("pickup_p50_ms", "write_round_trip_ms"),
    "pickup_p99_ratio": ("pickup_p99_ms", "write_round_trip_ms"),
}
"""Ratio → what is divided by what."""


def round_order(parts: Sequence[T], number: int) -> list[T]:
    """Return the parts in the order of a round: every other one backwards.

    Neighbours thus stay neighbours, and each comes first as often as the other.
    """
    return list(parts[::-1] if number % 2 else parts)


def with_ratios(measured: Mapping[str, float]) -> dict[str, float]:
    """Return what a round measured, with the ratios that follow."""
    ratios = {
        name: measured[above] / measured[below]
        for name, (above, below) in RATIOS.items()
        if above in measured and measured.get(below)
    }
    return {**measured, **ratios}
