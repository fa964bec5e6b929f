"""Draws the chosen curves, each on a control plane of its own."""

import time
from collections.abc import Callable, Sequence

from asyncjob_bench.curves.ranges import RANGES
from asyncjob_bench.curves.registry import CURVES
from asyncjob_bench.ground.site import site
from asyncjob_bench.reckoning.results import Results


def measure_curves(names: Sequence[str], scale: str, say: Callable[[str], None]) -> Results:
    """Measure all points; `say` takes a line for whoever waits."""
    results = Results()
    for name in names:
        began = time.monotonic()
        with site() as here:
            results.curves[name] = CURVES[name](here, RANGES[scale])
        say(f"{name}: {time.monotonic() - began:.0f} s")
    return results
