"""What a run found: one number per key, how far the rounds lay apart, and where it was measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from asyncjob_bench.reckoning.spread import Spread

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
