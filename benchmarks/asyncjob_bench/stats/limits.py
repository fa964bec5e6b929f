"""The checker: compares what was measured with the limits."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from asyncjob_bench.errors import BenchError

KINDS: Final = {"at_least", "at_most", "exactly"}


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit; `aim` is what to reach beyond it."""

    key: str
    kind: str
    value: float
    aim: float | None = None
    unit: str = ""

    def holds(self, number: float, *, aim: bool = False) -> bool:
        """Return whether the number is within the limit, or reaches the aim."""
        limit = self.aim if aim and self.aim is not None else self.value
        match self.kind:
            case "at_least":
                return number >= limit
            case "at_most":
                return number <= limit
            case _:
                return number == limit

    @property
    def text(self) -> str:
        """The limit as a table shows it."""
        sign = {"at_least": "≥", "at_most": "≤"}.get(self.kind, "=")
        return f"{sign} {self.value:g}{' ' if self.unit else ''}{self.unit}"


@dataclass(frozen=True, slots=True)
class LimitVerdict:
    """What became of one limit; `number` is None where nothing was measured."""

    limit: Limit
    number: float | None

    @property
    def met(self) -> bool:
        """Whether it was measured and holds."""
        return self.number is not None and self.limit.holds(self.number)

    @property
    def reached(self) -> bool:
        """Whether the aim is reached, too."""
        return self.number is not None and self.limit.holds(self.number, aim=True)

    @property
    def label(self) -> str:
        """One word for tables."""
        if self.number is None:
            return "not measured"
        if not self.met:
            return "MISSED"
        return "aim reached" if self.limit.aim is not None and self.reached else "met"


def read_limits(path: Path, table: str) -> list[Limit]:
    """Return the limits of one table; raises BenchError that names what is wrong where."""
    try:
        stored = tomllib.loads(path.read_text(encoding="utf-8"))[table]
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        raise BenchError(f"{path}: no table [{table}] can be read: {error}") from error
    return [_limit(path, f"{table}.{key}", key, entry) for key, entry in stored.items()]


def _limit(path: Path, where: str, key: str, entry: Mapping[str, Any]) -> Limit:
    kinds = KINDS & entry.keys()
    unknown = entry.keys() - KINDS - {"aim", "unit"}
    if len(kinds) != 1 or unknown:
        raise BenchError(
            f"{path}: {where} needs one of {', '.join(sorted(KINDS))}, and may have aim and unit; "
            f"it has {', '.join(entry) or 'nothing'}"
        )
    kind = kinds.pop()
    return Limit(key, kind, float(entry[kind]), entry.get("aim"), entry.get("unit", ""))


def check_limits(
    limits: Iterable[Limit], numbers: Mapping[str, float], *, only_measured: bool = False
) -> list[LimitVerdict]:
    """Return a verdict on each limit; `only_measured` leaves out those without a number."""
    verdicts = [LimitVerdict(limit, numbers.get(limit.key)) for limit in limits]
    return [it for it in verdicts if it.number is not None or not only_measured]
