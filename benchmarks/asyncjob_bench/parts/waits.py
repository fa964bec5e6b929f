"""What a job that waits without a slot costs.

The writes of one with three steps and a sleep, counted by the API server; how soon a handler goes
on once its signal is sent; and what thousands of parked jobs cost while nothing happens.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from asyncjob.names import JOBS, collection_path
from asyncjob_bench.errors import WrongOutcomeError
from asyncjob_bench.harness import templates
from asyncjob_bench.harness.handlers import SIGNAL, SIGNALLED, STAGES, STAMPS_VARIABLE
from asyncjob_bench.harness.site import Site
from asyncjob_bench.harness.space import ManagedWorker, Space
from asyncjob_bench.parts.end_to_end import NANOSECONDS_PER_MS
from asyncjob_bench.parts.flow import RunningStack, stack_in, start_stack, submit
from asyncjob_bench.parts.part import Numbers, PartContext
from asyncjob_bench.parts.writes import REQUESTS, WORKER_REQUESTS, stored_writes
from asyncjob_bench.stats.exposition import Scrape
from asyncjob_bench.stats.results import quantile
from asyncjob_dev.process import wait_until

JOBS_METRIC: Final = "asyncjob_jobs"
KNOWN_SECONDS: Final = 300.0
POLL_SECONDS: Final = 1.0
DAY: Final = timedelta(days=1)
MILLISECONDS: Final = 1000
WARM_UP: Final = 10
TICK: Final = 0.01
"""CPU time is counted in hundredths of a second; for a short while it may be none at all."""


def measure_writes(context: PartContext) -> Numbers:
    """Return the writes of a job with three steps and one sleep; on an audited control plane."""
    scale = context.scale
    with stack_in(context.site, "stages", workers=scale.workers, slots=scale.slots) as here:
        made = stored_writes(context.site, lambda: _run(here, scale.staged_jobs))
    return {"waits_writes": made / scale.staged_jobs}


def _run(here: RunningStack, count: int) -> None:
    submit(here.space, templates.submission(kind=STAGES), count, prefix="job-")
    here.wait_finished(count)


def measure_signals(context: PartContext) -> Numbers:
    """Return how soon after the answer to a signal the handler goes on, beside that answer's wait.

    Workers have nothing else to do, and each signal is sent once the handler of the last went on.
    """
    scale = context.scale
    with context.site.space("signals") as space:
        stamps = str(space.folder / "stamps")
        env = {STAMPS_VARIABLE: stamps}
        with start_stack(context.site, space, workers=scale.workers, slots=scale.slots, **env):
            answer = submit(
                space,
                templates.submission(kind=SIGNALLED),
                scale.signals + WARM_UP,
                prefix="job-",
                way="signals",
                signal=SIGNAL,
                stamps=stamps,
                warm_up=WARM_UP,
            )
    trip, resumed = (quantile(answer[key], 0.5) for key in ("round_trips", "resumes"))
    return {
        "signal_round_trip_ms": trip / NANOSECONDS_PER_MS,
        "signal_p50_ms": resumed / NANOSECONDS_PER_MS,
        "signal_p50_ratio": resumed / trip,
    }


def measure_parked(context: PartContext) -> Numbers:
    """Return what an operator with parked jobs uses, over one with as many that wait for a date.

    Both idle at the same time, each in a namespace of its own.
    """
    site, scale = context.site, context.scale
    parked, dated = site.space("parked"), site.space("dated")
    with parked as here, dated as beside:
        workers = [here.start_worker("worker", f"--concurrency={scale.slots}").wait_ready()]
        operators = [_operator(here), _operator(beside)]
        submit(here, templates.submission(kind=SIGNALLED), scale.parked_jobs, prefix="job-")
        submit(beside, _tomorrow(), scale.parked_jobs, prefix="job-")
        _until_known(operators[0], "Pending", scale.parked_jobs)
        _until_known(operators[1], "Scheduled", scale.parked_jobs)
        site.settle()
        numbers = _idle(context, operators, workers)
        for running in (*operators, *workers):
            running.worker.stop()
        _check(here, beside, scale.parked_jobs)
    return numbers


def _idle(
    context: PartContext, operators: list[ManagedWorker], workers: list[ManagedWorker]
) -> Numbers:
    seconds = context.scale.parked_seconds
    programs = {
        "parked": [operators[0].pid],
        "dated": [operators[1].pid],
        "workers": [it.pid for it in workers],
    }
    asked, before = _requests(context.site, workers), context.site.usage(programs)
    time.sleep(seconds)
    used, now = context.site.usage(programs) - before, _requests(context.site, workers)
    cores = {name: used.programs[name] / seconds * MILLISECONDS for name in programs}
    return {
        "parked_operator_ratio": (used.programs["parked"] + TICK) / (used.programs["dated"] + TICK),
        "parked_operator_ms_s": cores["parked"],
        "dated_operator_ms_s": cores["dated"],
        "parked_worker_ms_s": cores["workers"],
        "parked_requests": now - asked,
    }


def _operator(space: Space) -> ManagedWorker:
    return space.start_operator().wait_ready().wait_leading()


def _tomorrow() -> dict[str, Any]:
    return templates.submission(notBefore=(datetime.now(UTC) + DAY).isoformat())


def _until_known(operator: ManagedWorker, phase: str, count: int) -> None:
    wait_until(
        lambda: operator.metrics().total(JOBS_METRIC, phase=phase) == count,
        f"{count} jobs that are {phase}",
        within=KNOWN_SECONDS,
        every=POLL_SECONDS,
    )


def _requests(site: Site, workers: list[ManagedWorker]) -> float:
    """Return the requests so far for one AsyncJob, by whomever, and what workers have read.

    Whatever is parked, an operator lists all jobs every five minutes, to find what its watch has
    lost, and one of them each minute, for the API server's time. Neither counts.
    """
    scrape: Scrape = site.metrics()
    verbs = ("GET", "POST", "PUT", "PATCH", "APPLY", "DELETE")
    about_one = sum(scrape.total(REQUESTS, resource=JOBS, verb=verb) for verb in verbs)
    read = sum(it.metrics().total(WORKER_REQUESTS, method="GET") for it in workers)
    return about_one + read


def _check(parked: Space, dated: Space, count: int) -> None:
    for space, reason in ((parked, "WaitingForSignal"), (dated, "NotBefore")):
        found = {job["status"].get("reason") for job in space.jobs()}
        there = space.api.get(collection_path(space.name, JOBS), limit="1")
        total = len(there["items"]) + there["metadata"].get("remainingItemCount", 0)
        if found != {reason} or total != count:
            raise WrongOutcomeError(f"{total} of {count} jobs, for {found}, not {reason}")
