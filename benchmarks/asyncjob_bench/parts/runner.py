"""The list of all parts, and the runner.

Those that are compared in interleaved rounds, then the others.
"""

import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Final

from asyncjob_bench.errors import LeftOutError
from asyncjob_bench.harness.site import Site, site
from asyncjob_bench.parts import (
    arrays,
    ceiling,
    conflicts,
    end_to_end,
    large_jobs,
    native,
    operator_load,
    orphans,
    peer,
    waits,
    writes,
)
from asyncjob_bench.parts.part import Numbers, Part, PartContext, Scale
from asyncjob_bench.stats.results import Results, collect, round_order, with_ratios
from asyncjob_bench.stats.usage import merge_rounds
from asyncjob_dev.errors import DevError

PARTS: Final = (
    Part("bare", ceiling.measure_bare, compared=True),
    Part("raw", ceiling.measure_raw, compared=True),
    Part("end-to-end", end_to_end.measure_throughput, compared=True),
    Part("end-to-end-kopf", end_to_end.measure_throughput_by_kopf, compared=True),
    Part("pickup", end_to_end.measure_pickup, compared=True),
    Part("array-pickup", arrays.measure_pickup, compared=True, brings=("pickup",)),
    Part("native", native.measure, compared=True),
    Part("peer", peer.measure, compared=True),
    Part(
        "arrays",
        arrays.measure_throughput,
        compared=True,
        brings=(
            *("end-to-end", "peer", "pickup"),
            *("array-pickup", "array-kills", "array-memory", "array-writes"),
        ),
    ),
    Part("sweep", ceiling.measure_sweep),
    Part("conflicts", conflicts.measure),
    Part("fleet", conflicts.measure_fleet),
    Part("signals", waits.measure_signals),
    Part("orphans", orphans.measure),
    Part("large-jobs", large_jobs.measure),
    Part("array-kills", arrays.measure_kills),
    Part("array-memory", arrays.measure_memory),
    Part("parked", waits.measure_parked),
    Part("operator", operator_load.measure),
    Part("operator-kopf", operator_load.measure_by_kopf),
    Part("writes", writes.measure, site=writes.audited),
    Part("waits", waits.measure_writes, site=writes.audited),
    Part("array-writes", arrays.measure_writes, site=writes.audited),
    Part("allocation", ceiling.measure_untracked, site=ceiling.untracked),
    Part("allocation-tracked", ceiling.measure_tracked, site=ceiling.tracked),
    Part("allocation-before", ceiling.measure_before, site=ceiling.before),
)
"""In the order in which they run. The operator's many jobs come last on their control plane."""


Say = Callable[[str], None]
OpenSite = Callable[[], AbstractContextManager[Site]]


class Runner:
    """One run. `say` takes a line for whoever waits; `shared` opens the common control plane."""

    def __init__(self, scale: Scale, say: Say, shared: OpenSite = site) -> None:
        self.results = Results()
        self._scale = scale
        self._say = say
        self._open = shared

    def run(self, parts: Sequence[Part]) -> Results:
        """Measure all parts; one that cannot run here is left out with its reason."""
        shared = [part for part in parts if part.site is None]
        if shared:
            with self._open() as here:
                self._measure_shared(here, shared)
        for part in parts:
            if part.site is not None:
                with part.site() as here:
                    self._add([self._measure(part, here)])
        self.results.cpu = merge_rounds(self.results.cpu)
        return self.results

    def _measure_shared(self, here: Site, parts: Sequence[Part]) -> None:
        compared = [part for part in parts if part.compared]
        done: list[Numbers] = []
        for number in range(self._scale.rounds):
            done.append(self._round(here, compared, number))
            self._add(done)  # each time, so that an interruption costs one round alone
        for part in parts:
            if not part.compared:
                self._add([self._measure(part, here)])

    def _round(self, here: Site, parts: Sequence[Part], number: int) -> Numbers:
        found: Numbers = {}
        for part in round_order(parts, number):
            here.settle()
            found |= self._measure(part, here)
        return with_ratios(found)

    def _measure(self, part: Part, here: Site) -> Numbers:
        if part.name in {*self.results.left_out, *self.results.failed}:
            return {}
        began = time.monotonic()
        try:
            found = part.measure(PartContext(here, self._scale, self.results))
        except LeftOutError as error:
            self.results.left_out[part.name] = str(error)
            self._say(f"{part.name}: left out: {error}")
            return {}
        except (DevError, OSError, subprocess.SubprocessError) as error:
            # The others' numbers, of many minutes, are not to be lost with it.
            self.results.failed[part.name] = str(error)
            self._say(f"{part.name}: FAILED: {error}")
            return {}
        self._say(f"{part.name}: {time.monotonic() - began:.0f} s")
        return found

    def _add(self, rounds: Sequence[Numbers]) -> None:
        self.results.spreads |= collect(rounds)
