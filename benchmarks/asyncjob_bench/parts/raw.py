"""The API server's own limit: the same three writes by a program that does nothing else."""

from typing import Final

from asyncjob_bench.ground.generator import GeneratorReport, generate, whole_life
from asyncjob_bench.ground.space import PodToken, Space
from asyncjob_bench.parts.part import Numbers, PartContext
from asyncjob_bench.reckoning.budget import Usage, cpu_row
from asyncjob_bench.reckoning.results import OTHERS

CONNECTIONS: Final = 64
"""So many that etcd stores several writes at once, as it does for as many slots and submitters."""

BEYOND_CONNECTIONS: Final = 2 * CONNECTIONS


def measure_raw(bench: PartContext) -> Numbers:
    """Return the ceiling, without operator or workers."""
    scale = bench.scale
    with bench.site.space("raw") as space:
        pods = pod_tokens(space, scale.workers)
        generate(space, whole_life(space), scale.warm_up, workers=pods, prefix="warm-up-")
        report, used = generate_with_usage(bench, space, pods, scale.jobs, CONNECTIONS)
    bench.results.cpu.append(cpu_row("raw", used, scale.jobs))
    return {
        "raw_ceiling_jobs_s": scale.jobs / report.seconds,
        "raw_cores_busy": used.utilisation,
        "raw_generator_share": used.share("client"),
        "raw_create_p50_ms": report.latencies["create"]["p50"],
        "raw_claim_p50_ms": report.latencies["claim"]["p50"],
        "raw_complete_p50_ms": report.latencies["complete"]["p50"],
    }


def measure_sweep(bench: PartContext) -> Numbers:
    """Show that this many connections reach the ceiling: with twice as many, each waits longer."""
    rates = {}
    for connections in bench.scale.sweep:
        with bench.site.space("sweep") as space:
            pods = pod_tokens(space, bench.scale.workers)
            generate(
                space,
                whole_life(space),
                bench.scale.warm_up,
                workers=pods,
                prefix="warm-up-",
                connections=connections,
            )
            report, used = generate_with_usage(
                bench, space, pods, bench.scale.sweep_jobs, connections
            )
        rates[connections] = bench.scale.sweep_jobs / report.seconds
        bench.results.proofs.append(
            {
                "connections": connections,
                "jobs/s": rates[connections],
                "create p50 ms": report.latencies["create"]["p50"],
                "create p99 ms": report.latencies["create"]["p99"],
                "cores busy": used.utilisation,
                "API server": used.share("kube-apiserver"),
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
    bench: PartContext, space: Space, pods: list[PodToken], count: int, connections: int
) -> tuple[GeneratorReport, Usage]:
    """Run the generator and see who uses the machine meanwhile."""
    steps = whole_life(space)
    before = bench.site.usage()
    report = generate(space, steps, count, workers=pods, connections=connections)
    used = bench.site.usage() - before
    return report, used.with_client(report.cpu_seconds)
