"""What three writes cost the API server under each variant of the manifests.

What it allocates is steady within two hundredths, unlike its CPU time; collecting that again is a
good part of its work.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

import yaml

from asyncjob.schema.manifests import manifests
from asyncjob_bench.ground.generator import generate, whole_life
from asyncjob_bench.ground.site import Site, site
from asyncjob_bench.parts.part import Numbers
from asyncjob_bench.parts.raw import CONNECTIONS, pod_tokens
from asyncjob_bench.parts.scale import Scale
from asyncjob_bench.prices.variants import UNCHANGED, VARIANTS, Change
from asyncjob_bench.reckoning.results import Row
from asyncjob_bench.reckoning.rounds import round_order
from asyncjob_dev.environment.install import DEV_MANIFESTS

MEMORY: Final = "go_memstats_alloc_bytes_total"
PIECES: Final = "go_memstats_mallocs_total"
KIB: Final = 1024
THOUSAND: Final = 1000
API_SERVER: Final = "kube-apiserver"
ROUNDS: Final = 2


def measure_variants(scale: Scale, say: Callable[[str], None]) -> list[Row]:
    """Measure all variants in rounds; `say` takes a line for whoever waits."""
    found: dict[str, list[Numbers]] = {name: [] for name in VARIANTS}
    for number in range(ROUNDS):
        for name in round_order(list(VARIANTS), number):
            found[name].append(measure_variant(VARIANTS[name], scale))
            say(f"{name}: {found[name][-1]['KiB/job']:.0f} KiB per job")
    return variant_rows(found)


def variant_rows(found: Mapping[str, list[Numbers]]) -> list[Row]:
    """Return the table: medians, and what each saves of what the installed manifests cost."""
    medians = {
        name: {key: median(one[key] for one in rounds) for key in rounds[0]}
        for name, rounds in found.items()
    }
    whole = medians[UNCHANGED]["KiB/job"]
    return [
        {"what": name, **numbers, "saves %": 100 * (1 - numbers["KiB/job"] / whole)}
        for name, numbers in medians.items()
    ]


def measure_variant(change: Change, scale: Scale) -> Numbers:
    """Return what one job costs with the changed manifests, on a control plane of its own."""
    with TemporaryDirectory(prefix="asyncjob-bench-") as folder:
        file = Path(folder) / "changed.yaml"
        file.write_text(yaml.safe_dump_all(change(installed())), encoding="utf-8")
        with site(controllers=False, manifests=(file.parent, DEV_MANIFESTS)) as here:
            return _three_writes(here, scale)


def installed() -> list[dict[str, object]]:
    """Return the manifests anew each time: a variant changes them in place."""
    texts = yaml.safe_dump_all(one for objects in manifests().values() for one in objects)
    return list(yaml.safe_load_all(texts))


def _three_writes(here: Site, scale: Scale) -> Numbers:
    with here.space("price") as space:
        pods, steps = pod_tokens(space, scale.workers), whole_life(space)
        generate(space, steps, scale.warm_up, workers=pods, prefix="warm-up-")
        before, cpu = here.metrics(), here.usage()
        generate(space, steps, scale.priced_jobs, workers=pods, connections=CONNECTIONS)
        after, used = here.metrics(), here.usage() - cpu
    jobs = scale.priced_jobs
    return {
        "KiB/job": (after.total(MEMORY) - before.total(MEMORY)) / jobs / KIB,
        "thousand pieces/job": (after.total(PIECES) - before.total(PIECES)) / jobs / THOUSAND,
        "CPU ms/job": used.per_job(jobs)[API_SERVER],
    }
