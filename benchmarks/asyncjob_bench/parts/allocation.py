"""What the API server allocates for a plain job's three writes.

It repeats within two hundredths from run to run, which CPU time does not, and collecting it again
is a good part of the API server's work. Managed fields of jobs that nobody applies are off, as
`policies.mutating` of the chart asks for; beside it stands what it is without that policy.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import orjson

from asyncjob.names import JOBS, collection_path
from asyncjob_bench.harness.generator import generate, whole_life
from asyncjob_bench.harness.site import Site, site
from asyncjob_bench.parts.ceiling import CONNECTIONS, pod_tokens
from asyncjob_bench.parts.part import Numbers, PartContext, Scale
from asyncjob_bench.stats.usage import API_SERVER
from asyncjob_dev.environment.components import MANIFESTS

MEMORY: Final = "go_memstats_alloc_bytes_total"
PIECES: Final = "go_memstats_mallocs_total"
KIB: Final = 1024
THOUSAND: Final = 1000
PER_JOB: Final = "KiB/job"
MUTATING: Final = MANIFESTS[0] / "mutating"


@contextmanager
def untracked() -> Iterator[Site]:
    """Run a control plane that drops managedFields of jobs that nobody applies."""
    with site(controllers=False, manifests=(*MANIFESTS, MUTATING)) as here:
        yield here


@contextmanager
def tracked() -> Iterator[Site]:
    """Run one that tracks all fields, as without `policies.mutating`."""
    with site(controllers=False) as here:
        yield here


def measure_untracked(context: PartContext) -> Numbers:
    """Return what a plain job costs where nobody applies."""
    return {"api_alloc_kib_per_job": three_writes(context.site, context.scale)[PER_JOB]}


def measure_tracked(context: PartContext) -> Numbers:
    """Return what it costs with all its fields tracked."""
    return {"api_alloc_kib_per_job_tracked": three_writes(context.site, context.scale)[PER_JOB]}


def three_writes(here: Site, scale: Scale) -> Numbers:
    """Return what one job costs the API server, by the three writes of the generator."""
    with here.space("price") as space:
        pods, steps = pod_tokens(space, scale.workers), whole_life(space)
        generate(space, steps, scale.warm_up, workers=pods, prefix="warm-up-")
        before, cpu = here.metrics(), here.usage()
        generate(space, steps, scale.priced_jobs, workers=pods, connections=CONNECTIONS)
        after, used = here.metrics(), here.usage() - cpu
        size = _stored_bytes(here, space.name)
    jobs = scale.priced_jobs
    return {
        PER_JOB: (after.total(MEMORY) - before.total(MEMORY)) / jobs / KIB,
        "thousand pieces/job": (after.total(PIECES) - before.total(PIECES)) / jobs / THOUSAND,
        "CPU ms/job": used.per_job(jobs)[API_SERVER],
        "bytes": float(size),
    }


def _stored_bytes(here: Site, namespace: str) -> int:
    """Return the size of a finished job as JSON, which is how etcd holds it."""
    text = here.read(f"{collection_path(namespace, JOBS)}?limit=1")
    [job] = orjson.loads(text)["items"]
    return len(orjson.dumps(job))
