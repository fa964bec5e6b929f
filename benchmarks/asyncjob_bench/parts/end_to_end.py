"""Jobs from creation to completion, with an operator, workers and a submitter in Python."""

from asyncjob_bench.parts.crew import start_stack
from asyncjob_bench.parts.flow import run_flow
from asyncjob_bench.parts.part import Numbers, PartContext
from asyncjob_bench.reckoning.budget import cpu_row


def measure_throughput(bench: PartContext) -> Numbers:
    """Return the rate of the whole."""
    scale = bench.scale
    with (
        bench.site.space("whole") as space,
        start_stack(bench.site, space, workers=scale.workers, slots=scale.slots) as here,
    ):
        done = run_flow(here, scale.jobs, warm_up=scale.warm_up)
    bench.results.cpu.append(cpu_row("end to end", done.used, scale.jobs))
    return {
        "end_to_end_jobs_s": done.rate,
        "end_to_end_cores_busy": done.used.utilisation,
        "foreign_share": done.used.foreign,
        **done.used.figures(scale.jobs),
    }
