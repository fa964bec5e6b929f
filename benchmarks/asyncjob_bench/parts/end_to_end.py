"""Jobs from creation to completion, with an operator, workers and a submitter in Python.

The rate of the whole, and how soon an idle worker begins a job.
"""

from asyncjob_bench.harness.handlers import STAMPS_VARIABLE
from asyncjob_bench.harness.space import BY_KOPF
from asyncjob_bench.parts.flow import Flow, run_flow, stack_in, start_stack, submit_one_by_one
from asyncjob_bench.parts.part import Numbers, PartContext
from asyncjob_bench.stats.results import quantile
from asyncjob_bench.stats.usage import API_SERVER, cpu_row


def measure_throughput(context: PartContext) -> Numbers:
    """Return the rate of the whole."""
    scale, done = context.scale, _flow(context, "whole", "end to end")
    return {
        "end_to_end_jobs_s": done.rate,
        "end_to_end_cores_busy": done.used.utilisation,
        "jobs_s_per_api_core": done.used.jobs_per_core_second(scale.jobs, API_SERVER),
        "foreign_share": done.used.foreign,
        **done.used.figures(scale.jobs),
    }


def measure_throughput_by_kopf(context: PartContext) -> Numbers:
    """Return the rate of the whole while the operator sees jobs by kopf."""
    done = _flow(context, "whole-kopf", "end to end, jobs by kopf", *BY_KOPF)
    return {"kopf_end_to_end_jobs_s": done.rate}


def _flow(context: PartContext, name: str, what: str, *operator: str) -> Flow:
    scale = context.scale
    with stack_in(
        context.site, name, workers=scale.workers, slots=scale.slots, operator=operator
    ) as here:
        done = run_flow(here, scale.jobs, warm_up=scale.warm_up)
    context.results.cpu.append(cpu_row(what, done.used, scale.jobs))
    return done


NANOSECONDS_PER_MS = 1e6


def measure_pickup(context: PartContext) -> Numbers:
    """Return both ends of the wait, beside a create's round trip in the same seconds."""
    scale = context.scale
    with context.site.space("pickup") as space:
        stamps = str(space.folder / "stamps")
        env = {STAMPS_VARIABLE: stamps}
        with start_stack(context.site, space, workers=scale.workers, slots=scale.slots, **env):
            answer = submit_one_by_one(space, stamps, scale.pickups)
    trips, pickups = answer["round_trips"], answer["pickups"]
    return {
        "write_round_trip_ms": quantile(trips, 0.5) / NANOSECONDS_PER_MS,
        "pickup_p50_ms": quantile(pickups, 0.5) / NANOSECONDS_PER_MS,
        "pickup_p99_ms": quantile(pickups, 0.99) / NANOSECONDS_PER_MS,
    }
