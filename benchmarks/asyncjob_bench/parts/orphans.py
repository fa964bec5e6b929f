"""How soon all jobs of a worker whose container ended are taken from it."""

import time
from typing import Any, Final

from asyncjob_bench.errors import WrongOutcomeError
from asyncjob_bench.harness import templates
from asyncjob_bench.harness.handlers import HOLD
from asyncjob_bench.harness.space import ManagedWorker, Space
from asyncjob_bench.parts.flow import stack_in, submit
from asyncjob_bench.parts.part import Numbers, PartContext
from asyncjob_dev.process import wait_until

RUNNING: Final = "asyncjob_worker_running"
START_SECONDS: Final = 120.0
RECOVERY_TIMEOUT_SECONDS: Final = 120.0
POLL_SECONDS: Final = 0.1


def measure(context: PartContext) -> Numbers:
    """Return the seconds from the death of a worker's process, to two moments.

    Released: no job is called its own any more. Requeued: all wait to be claimed again, which the
    first crash brings about in the same write.
    """
    count = context.scale.orphans
    with stack_in(context.site, "orphans", workers=1, slots=count) as here:
        (worker,), space = here.workers, here.space
        submit(space, _long_job(), count, prefix="job-")
        _until_running(worker, count)
        context.site.settle()
        died = time.monotonic()
        worker.worker.kill()
        _until_none_is(space, "Running")
        released = time.monotonic() - died
        _until_none_is(space, "Running", "Retrying")
        requeued = time.monotonic() - died
        _check(space, count)
    return {"orphans_released_s": released, "orphans_requeued_s": requeued}


def _long_job() -> dict[str, Any]:
    # Longer than all of it, so that nothing but the end of the container explains a recovery.
    return templates.submission(kind=HOLD, leaseDurationSeconds=600, executionTimeoutSeconds=7200)


def _check(space: Space, count: int) -> None:
    found = [job["status"]["phase"] for job in space.jobs()]
    if len(found) != count or set(found) != {"Queued"}:
        raise WrongOutcomeError(f"{len(found)} of {count} jobs, in {', '.join(sorted(set(found)))}")


def _until_running(worker: ManagedWorker, count: int) -> None:
    wait_until(
        lambda: worker.metrics().total(RUNNING) == count,
        f"the start of {count} jobs",
        within=START_SECONDS,
        every=POLL_SECONDS,
    )


def _until_none_is(space: Space, *phases: str) -> None:
    wait_until(
        lambda: not space.any_in(*phases),
        f"the end of what is {' or '.join(phases)}",
        within=RECOVERY_TIMEOUT_SECONDS,
        every=POLL_SECONDS,
    )
