"""What every part of the benchmark looks like to the runner, and how much is measured.

The full size for figures, a small one to see that everything works.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from asyncjob_bench.harness.site import Site
from asyncjob_bench.stats.results import Results


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Sizes of all parts. `sweep` are the numbers of connections that the ceiling is tried with."""

    name: str
    rounds: int
    jobs: int
    warm_up: int
    native_jobs: int
    sweep: tuple[int, ...]
    sweep_jobs: int
    pickups: int
    idle_claims: int
    backlog_claims: int
    counted_jobs: int
    few_jobs: int
    many_jobs: int
    operator_jobs: int
    orphans: int
    large_jobs: int
    fleet: int
    """Workers that share the shards out; the figures are called after the full scale's 64."""

    fleet_jobs: int
    priced_jobs: int
    staged_jobs: int
    signals: int
    parked_jobs: int
    parked_seconds: int
    array_items: int
    million_items: int
    """Of the array beside which the operator's memory is watched, called after the full scale's."""

    item_kills: int
    workers: int = 2
    slots: int = 32
    many_workers: int = 16


FULL: Final = Scale(
    name="full",
    rounds=4,
    jobs=2000,
    warm_up=300,
    native_jobs=400,
    sweep=(4, 16, 64, 128),
    sweep_jobs=2000,
    pickups=300,
    idle_claims=300,
    backlog_claims=3000,
    counted_jobs=500,
    few_jobs=1000,
    many_jobs=50_000,
    operator_jobs=1500,
    orphans=1000,
    large_jobs=500,
    fleet=64,
    fleet_jobs=1000,
    priced_jobs=1000,
    staged_jobs=100,
    signals=200,
    parked_jobs=10_000,
    parked_seconds=600,
    array_items=100_000,
    million_items=1_000_000,
    item_kills=3,
)
"""About fifty minutes on two quiet cores, ten of which are of parked jobs, and ten of arrays."""

SMALL: Final = Scale(
    name="small",
    rounds=2,
    jobs=300,
    warm_up=50,
    native_jobs=40,
    sweep=(16, 64, 128),
    sweep_jobs=150,
    pickups=30,
    idle_claims=30,
    backlog_claims=200,
    counted_jobs=50,
    few_jobs=200,
    many_jobs=1000,
    operator_jobs=200,
    orphans=60,
    large_jobs=20,
    fleet=8,
    fleet_jobs=100,
    priced_jobs=100,
    staged_jobs=20,
    signals=20,
    parked_jobs=100,
    parked_seconds=10,
    array_items=3000,
    million_items=20_000,
    item_kills=1,
)
"""A few minutes; shows that all works, and nothing of how fast."""

SCALES: Final = {scale.name: scale for scale in (FULL, SMALL)}


Numbers = dict[str, float]


@dataclass(frozen=True, slots=True)
class PartContext:
    """Where to measure, how much, and where rows of tables go."""

    site: Site
    scale: Scale
    results: Results


Measure = Callable[[PartContext], Numbers]


@dataclass(frozen=True, slots=True)
class Part:
    """One part. Those that are `compared` run in rounds, interleaved, on one control plane.

    Any other runs once, on a control plane of its own if `site` makes one. A part may raise
    LeftOutError, in any round.
    """

    name: str
    measure: Measure
    compared: bool = False
    site: Callable[[], AbstractContextManager[Site]] | None = None
    brings: tuple[str, ...] = ()
    """Parts that are measured wherever this one is asked for: those that its ratios are over."""


def with_brought(names: Collection[str], parts: Sequence[Part]) -> list[Part]:
    """Return the parts of these names and those that they bring, in the order of all parts."""
    wanted = set(names)
    for part in parts:
        if part.name in names:
            wanted |= set(part.brings)
    return [part for part in parts if part.name in wanted]
