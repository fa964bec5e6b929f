"""Sees to it that certain workers hold jobs when a fault begins.

The plain load has short jobs: at any moment a worker may hold none, and a fault that takes it away
then makes no lease expire.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from asyncjob.json_types import JsonObject, child, integer, text
from asyncjob.lifecycle.timestamps import parse_timestamp
from asyncjob.names import JOBS, collection_path
from asyncjob_chaos.handlers import LONG
from asyncjob_chaos.target import WORKERS, FaultTarget
from asyncjob_dev.errors import NotReadyError

STEPS: Final = 30
STEP_SECONDS: Final = 0.4
FRESH_SECONDS: Final = 4.0
"""How long ago the claim may be: a job then runs for longer than its lease lasts unrenewed."""

NEXT_LOOK_SECONDS: Final = 2.0
WITHIN_SECONDS: Final = 60.0


def occupy(target: FaultTarget, workers: Iterable[str]) -> None:
    """Submit jobs of twelve seconds until each of these workers has just claimed one."""
    wanted = frozenset(workers)
    path = collection_path(target.namespace, JOBS)

    def held() -> bool:
        running = target.api.get(path, fieldSelector="status.phase=Running")["items"]
        return wanted <= holders(running, datetime.now(UTC))

    def submit_and_look() -> bool:
        payload = {"seconds": STEP_SECONDS, "steps": STEPS}
        for _ in WORKERS:
            target.load.submit({"type": LONG, "payload": payload})
        try:
            target.until(held, "workers to claim", NEXT_LOOK_SECONDS)
        except NotReadyError:
            return False
        return True

    target.until(submit_and_look, f"a job on each of {', '.join(sorted(wanted))}", WITHIN_SECONDS)


def holders(jobs: Iterable[JsonObject], now: datetime) -> frozenset[str]:
    """Return the workers that hold, of these running jobs, one of ours that goes on for a while."""
    return frozenset(
        text(child(child(job, "status"), "lease"), "holder") for job in jobs if _goes_on(job, now)
    )


def _goes_on(job: JsonObject, now: datetime) -> bool:
    if integer(child(child(job, "spec"), "payload"), "steps") != STEPS:
        return False
    claimed = parse_timestamp(text(child(child(job, "status"), "lease"), "acquireTime"))
    return (now - claimed).total_seconds() < FRESH_SECONDS
