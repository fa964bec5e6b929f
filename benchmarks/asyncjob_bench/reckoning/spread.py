"""Several measurements of one thing, as a median with its spread."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Number = int | float


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
