"""What every part of the benchmark looks like to the runner."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from asyncjob_bench.ground.site import Site
from asyncjob_bench.parts.scale import Scale
from asyncjob_bench.reckoning.results import Results

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
