"""All curves, by name."""

from collections.abc import Callable, Mapping
from typing import Final

from asyncjob_bench.curves.flows import over_objects, over_payloads, over_workers
from asyncjob_bench.curves.long_jobs import over_long_jobs
from asyncjob_bench.curves.ranges import Ranges
from asyncjob_bench.curves.retention import over_retained
from asyncjob_bench.ground.site import Site
from asyncjob_bench.reckoning.results import Row

Curve = Callable[[Site, Ranges], list[Row]]

CURVES: Final[Mapping[str, Curve]] = {
    "objects": over_objects,
    "workers": over_workers,
    "payload": over_payloads,
    "long-jobs": over_long_jobs,
    "retention": over_retained,
}
