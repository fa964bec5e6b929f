"""The API server's own limit: the same three writes by a program that does nothing else.

Raw: on AsyncJobs, with schema and policies. Bare: on a custom resource without schema, defaults,
columns, selectors or policies; the difference is the price of the rules.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import orjson

from asyncjob.names import API_VERSION, JOB_KIND, JOBS, collection_path
from asyncjob_bench.harness.generator import GeneratorReport, generate, whole_life
from asyncjob_bench.harness.site import Site, site
from asyncjob_bench.harness.space import RBAC, PodToken, Space
from asyncjob_bench.harness.templates import Step
from asyncjob_bench.parts.part import Numbers, PartContext, Scale
from asyncjob_bench.stats.results import OTHERS
from asyncjob_bench.stats.usage import API_SERVER, Usage, cpu_row
from asyncjob_dev.api import Api, Object
from asyncjob_dev.environment.components import MANIFESTS
from asyncjob_dev.errors import ApiStatusError
from asyncjob_dev.process import wait_until

CONNECTIONS: Final = 64
"""So many that etcd stores several writes at once, as it does for as many slots and submitters."""

BEYOND_CONNECTIONS: Final = 2 * CONNECTIONS


def measure_raw(context: PartContext) -> Numbers:
    """Return the ceiling, without operator or workers."""
    scale = context.scale
    with context.site.space("raw") as space:
        pods = pod_tokens(space, scale.workers)
        generate(space, whole_life(space), scale.warm_up, workers=pods, prefix="warm-up-")
        report, used = generate_with_usage(context, space, pods, scale.jobs, CONNECTIONS)
    context.results.cpu.append(cpu_row("raw", used, scale.jobs))
    return {
        "raw_ceiling_jobs_s": scale.jobs / report.seconds,
        "raw_cores_busy": used.utilisation,
        "raw_generator_share": used.share("client"),
        "raw_jobs_s_per_api_core": used.jobs_per_core_second(scale.jobs, API_SERVER),
        "raw_create_p50_ms": report.latencies["create"]["p50"],
        "raw_claim_p50_ms": report.latencies["claim"]["p50"],
        "raw_complete_p50_ms": report.latencies["complete"]["p50"],
    }


def measure_sweep(context: PartContext) -> Numbers:
    """Show that this many connections reach the ceiling: with twice as many, each waits longer."""
    rates = {}
    for connections in context.scale.sweep:
        with context.site.space("sweep") as space:
            pods = pod_tokens(space, context.scale.workers)
            generate(
                space,
                whole_life(space),
                context.scale.warm_up,
                workers=pods,
                prefix="warm-up-",
                connections=connections,
            )
            report, used = generate_with_usage(
                context, space, pods, context.scale.sweep_jobs, connections
            )
        rates[connections] = context.scale.sweep_jobs / report.seconds
        context.results.proofs.append(
            {
                "connections": connections,
                "jobs/s": rates[connections],
                "create p50 ms": report.latencies["create"]["p50"],
                "create p99 ms": report.latencies["create"]["p99"],
                "cores busy": used.utilisation,
                "API server": used.share(API_SERVER),
                "etcd": used.share("etcd"),
                "generator": used.share("client"),
                OTHERS: used.foreign,
            }
        )
    return {"raw_beyond_ratio": rates[BEYOND_CONNECTIONS] / rates[CONNECTIONS]}


def pod_tokens(space: Space, count: int) -> list[PodToken]:
    """Return pods' tokens, under the names that workers' pods have."""
    return [space.pod_token(f"pod-{number}") for number in range(count)]


def generate_with_usage(
    context: PartContext, space: Space, pods: list[PodToken], count: int, connections: int
) -> tuple[GeneratorReport, Usage]:
    """Run the generator and see who uses the machine meanwhile."""
    steps = whole_life(space)
    before = context.site.usage()
    report = generate(space, steps, count, workers=pods, connections=connections)
    used = context.site.usage() - before
    return report, used.with_client(report.cpu_seconds)


# ---- what it allocates: repeats within two hundredths from run to run, which CPU time does not


MEMORY: Final = "go_memstats_alloc_bytes_total"
PIECES: Final = "go_memstats_mallocs_total"
KIB: Final = 1024
THOUSAND: Final = 1000
PER_JOB: Final = "KiB/job"
SERVICE_UNAVAILABLE: Final = 503
MUTATING: Final = MANIFESTS[0] / "mutating"
RELEASES: Final = Path(__file__).parents[3] / "tests/releases"


@contextmanager
def untracked() -> Iterator[Site]:
    """Run a control plane that drops managedFields of jobs that nobody applies.

    `policies.mutating` of the chart asks for that.
    """
    with site(controllers=False, manifests=(*MANIFESTS, MUTATING)) as here:
        _await_mutation(here)
        yield here


@contextmanager
def before() -> Iterator[Site]:
    """Run one with CRDs and policies of the version before, as it is recorded for upgrades.

    It drops managedFields as well: what differs is the schema, the rules and their number.
    """
    [*_, folder] = sorted(RELEASES.glob("*/chart/files/crds"))
    with site(controllers=False, manifests=(folder, MANIFESTS[1], MUTATING)) as here:
        _await_mutation(here)
        yield here


def _await_mutation(here: Site) -> None:
    """Wait until jobs are taken: what changes them has to read the new schema first (503)."""
    path = collection_path("default", JOBS)
    job: Object = {"apiVersion": API_VERSION, "kind": JOB_KIND, "metadata": {"name": "probe"}}

    def is_taken() -> bool:
        try:
            here.plane.api.create(path, {**job, "spec": {"type": "probe"}}, dryRun="All")
        except ApiStatusError as error:
            if error.status != SERVICE_UNAVAILABLE:
                raise
            return False
        return True

    wait_until(is_taken, "the mutating policies", within=WITHIN_SECONDS)


@contextmanager
def tracked() -> Iterator[Site]:
    """Run one that tracks all fields, as without `policies.mutating`."""
    with site(controllers=False) as here:
        yield here


def measure_untracked(context: PartContext) -> Numbers:
    """Return what a plain job costs where nobody applies."""
    return {"api_alloc_kib_per_job": three_writes(context.site, context.scale)[PER_JOB]}


def measure_before(context: PartContext) -> Numbers:
    """Return what it cost in the version before, and what today's is over that."""
    cost = three_writes(context.site, context.scale)[PER_JOB]
    today = context.results.medians.get("api_alloc_kib_per_job")
    ratio = {} if today is None else {"plain_alloc_ratio": today / cost}
    return {"api_alloc_kib_per_job_before": cost, **ratio}


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


# ---- without rules

GROUP: Final = "bare.bench.local"
VERSION: Final = "v1"
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
ROLE: Final = "bare"
WITHIN_SECONDS: Final = 30.0


def measure_bare(context: PartContext) -> Numbers:
    """Return the ceiling of custom resources that nobody checks."""
    scale = context.scale
    with context.site.space("bare") as space:
        _prepare(context.site, space)
        pods, steps = pod_tokens(space, scale.workers), [_bare_step(it) for it in whole_life(space)]
        generate(space, steps, scale.warm_up, workers=pods, prefix="warm-up-")
        before = context.site.usage()
        report = generate(space, steps, scale.jobs, workers=pods, connections=CONNECTIONS)
        used = context.site.usage() - before
    return {
        "bare_ceiling_jobs_s": scale.jobs / report.seconds,
        "bare_jobs_s_per_api_core": used.jobs_per_core_second(scale.jobs, API_SERVER),
    }


def _bare_step(step: Step) -> Step:
    ours, theirs = API_VERSION, f"{GROUP}/{VERSION}"
    return replace(
        step,
        path=step.path.replace(f"/apis/{ours}/", f"/apis/{theirs}/"),
        body=step.body.replace(f'"{ours}"', f'"{theirs}"'),
    )


def _prepare(here: Site, space: Space) -> None:
    """Define the resource, unless an earlier round has, and let this namespace's accounts write."""
    try:
        space.api.create(CRDS, _definition())
    except ApiStatusError as error:
        if error.reason != "AlreadyExists":
            raise
    path = f"/apis/{RBAC}/v1/namespaces/{space.name}"
    space.api.create(f"{path}/roles", _role())
    space.api.create(f"{path}/rolebindings", _binding(space.name))
    wait_until(lambda: _served(space.api), "the bare resource", within=WITHIN_SECONDS)
    wait_until(lambda: _allowed(space), "the right to write it", within=WITHIN_SECONDS)
    here.await_collector(GROUP)


def _definition() -> Object:
    anything = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-map-type": "atomic",
    }
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"plural": JOBS, "singular": "asyncjob", "kind": JOB_KIND}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{JOBS}.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def _role() -> Object:
    rule = {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "Role",
        "metadata": {"name": ROLE},
        "rules": [rule],
    }


def _binding(namespace: str) -> Object:
    everybody = {"kind": "Group", "name": f"system:serviceaccounts:{namespace}", "apiGroup": RBAC}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": ROLE},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": ROLE},
        "subjects": [everybody],
    }


def _served(api: Api) -> bool:
    try:
        api.get(f"/apis/{GROUP}/{VERSION}/{JOBS}")
    except ApiStatusError:
        return False
    return True


def _allowed(space: Space) -> bool:
    asked = {"group": GROUP, "resource": JOBS, "verb": "create", "namespace": space.name}
    group = f"system:serviceaccounts:{space.name}"
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"groups": [group], "user": "anybody", "resourceAttributes": asked},
    }
    return bool(space.api.create(REVIEWS, review)["status"]["allowed"])
