"""What a run found: one number per key with its spread over the rounds, and where it was measured.

Rounds are interleaved, so that what else the machine does hits all parts alike; ratios are taken
within a round, and their median over the rounds.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar


@dataclass(frozen=True, slots=True)
class Spread:
    """All values in the order they were measured, and what is said of them."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        """The least."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The greatest."""
        return max(self.values)

    @property
    def mean(self) -> float:
        """The mean, for limits."""
        return statistics.fmean(self.values)

    def to_json(self) -> dict[str, object]:
        """Return what is stored of it."""
        return {"low": self.low, "high": self.high, "values": list(self.values)}


def quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile by the nearest rank; raises ValueError without values."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def collect(rounds: Sequence[Mapping[str, float]]) -> dict[str, Spread]:
    """Return each key's values over all rounds that have it."""
    keys = dict.fromkeys(key for measured in rounds for key in measured)
    return {key: Spread(tuple(r[key] for r in rounds if key in r)) for key in keys}


T = TypeVar("T")

RATIOS: Final[Mapping[str, tuple[str, str]]] = {
    "end_to_end_ratio": ("end_to_end_jobs_s", "raw_ceiling_jobs_s"),
    "kopf_end_to_end_ratio": ("kopf_end_to_end_jobs_s", "raw_ceiling_jobs_s"),
    "native_ratio": ("end_to_end_jobs_s", "native_jobs_s"),
    "raw_native_ratio": ("raw_ceiling_jobs_s", "native_jobs_s"),
    "raw_bare_ratio": ("raw_ceiling_jobs_s", "bare_ceiling_jobs_s"),
    "bare_native_ratio": ("bare_ceiling_jobs_s", "native_jobs_s"),
    "peer_postgres_ratio": ("end_to_end_jobs_s", "peer_postgres_jobs_s"),
    "array_items_over_jobs": ("array_items_s", "end_to_end_jobs_s"),
    "array_items_over_peer": ("array_items_s", "peer_postgres_jobs_s"),
    "array_plain_pickup_ratio": ("array_pickup_p99_ms", "pickup_p99_ms"),
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


Row = dict[str, float | str]

OTHERS: Final = "of it others"
"""The column with the share of the machine that none of the programs used that it is about."""


@dataclass(slots=True)
class Results:
    """One run. `curves` and `proofs` are rows of tables.

    `left_out` says why parts are missing, `failed` what went wrong with those that broke off.
    """

    run: dict[str, Any] = field(default_factory=dict)
    spreads: dict[str, Spread] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    cpu: list[Row] = field(default_factory=list)
    proofs: list[Row] = field(default_factory=list)
    curves: dict[str, list[Row]] = field(default_factory=dict)

    @property
    def medians(self) -> dict[str, float]:
        """Each key's number."""
        return {key: spread.median for key, spread in self.spreads.items()}

    @property
    def foreign_share(self) -> float:
        """The largest share of the machine that others used, as far as anything tells."""
        tables = [self.cpu, self.proofs, *self.curves.values()]
        shares = [float(row[OTHERS]) for rows in tables for row in rows if OTHERS in row]
        return max([self.medians.get("foreign_share", 0.0), *shares])

    def to_json(self) -> dict[str, Any]:
        """Return the stored form: the numbers at the top, all else below keys of its own."""
        return {
            **self.medians,
            "spread": {key: spread.to_json() for key, spread in self.spreads.items()},
            "run": self.run,
            "left_out": self.left_out,
            "failed": self.failed,
            "cpu": self.cpu,
            "proofs": self.proofs,
            "curves": self.curves,
        }

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> "Results":
        """Return what was stored; raises KeyError where it is no result of this program."""
        spreads = {key: Spread(tuple(it["values"])) for key, it in stored["spread"].items()}
        return cls(
            run=stored["run"],
            spreads=spreads,
            left_out=stored["left_out"],
            failed=stored["failed"],
            cpu=stored["cpu"],
            proofs=stored["proofs"],
            curves=stored["curves"],
        )
