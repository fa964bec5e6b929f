"""What a job costs on other versions of Kubernetes and etcd, beside the ones that are pinned.

The same three writes on control planes without controllers, in rounds of one run.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Final

from asyncjob_bench.harness.site import site
from asyncjob_bench.parts.ceiling import three_writes
from asyncjob_bench.parts.part import Numbers, Scale
from asyncjob_bench.stats.results import Row, round_order
from asyncjob_dev.binaries import TOOLS, Binary, Resolver, default_resolver
from asyncjob_dev.binaries.resolver import assets_folder, programs_of

ROUNDS: Final = 3
NAMED: Final = {"kube-apiserver": "kubernetes", "etcd": "etcd"}
"""Programs whose versions are shown, and under which names."""


def measure_versions(
    scale: Scale, say: Callable[[str], None], versions: Iterable[str] = ()
) -> list[Row]:
    """Measure these minor versions, such as `1.37`, beside the pinned one.

    What is missing of them is built first. `say` takes a line for whoever waits.
    """
    programs = [default_resolver().resolve_all(TOOLS)]
    programs += [programs_of(version, os.environ) for version in versions]
    found: dict[int, list[Numbers]] = {place: [] for place in range(len(programs))}
    for number in range(ROUNDS):
        for place in round_order(list(found), number):
            found[place].append(measure_version(programs[place], scale))
            name = _version(programs[place], "kube-apiserver")
            say(f"Kubernetes {name}: {found[place][-1]['KiB/job']:.0f} KiB per job")
    return version_rows(programs, list(found.values()))


def measure_version(programs: Sequence[Binary], scale: Scale) -> Numbers:
    """Return what one job costs on these programs, on a control plane of its own."""
    assets = {"KUBEBUILDER_ASSETS": str(assets_folder(programs, os.environ))}
    with site(controllers=False, resolver=Resolver({**os.environ, **assets})) as here:
        return three_writes(here, scale)


def version_rows(
    programs: Sequence[Sequence[Binary]], found: Sequence[Sequence[Numbers]]
) -> list[Row]:
    """Return the table: the medians of each, and its cost over that of the first."""
    rows: list[Row] = []
    pinned = median(one["KiB/job"] for one in found[0])
    for its, rounds in zip(programs, found, strict=True):
        medians = {key: median(one[key] for one in rounds) for key in rounds[0]}
        names = {name: _version(its, tool) for tool, name in NAMED.items()}
        rows.append({**names, **medians, "over pinned": medians["KiB/job"] / pinned})
    return rows


def _version(programs: Sequence[Binary], tool: str) -> str:
    return next(one.version for one in programs if one.tool == tool)
