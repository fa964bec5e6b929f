"""All parts, by name: the one list that the command line, the runner and the page read."""

from typing import Final

from asyncjob_bench.parts import (
    bare,
    conflicts,
    end_to_end,
    native,
    operator_load,
    orphans,
    peer,
    pickup,
    raw,
    writes,
)
from asyncjob_bench.parts.part import Part

PARTS: Final = (
    Part("bare", bare.measure_bare, compared=True),
    Part("raw", raw.measure_raw, compared=True),
    Part("end-to-end", end_to_end.measure_throughput, compared=True),
    Part("pickup", pickup.measure_pickup, compared=True),
    Part("native", native.measure, compared=True),
    Part("peer", peer.measure, compared=True),
    Part("sweep", raw.measure_sweep),
    Part("conflicts", conflicts.measure),
    Part("orphans", orphans.measure),
    Part("operator", operator_load.measure),
    Part("writes", writes.measure, site=writes.audited),
)
"""In the order in which they run. The operator's many jobs come last on their control plane."""
