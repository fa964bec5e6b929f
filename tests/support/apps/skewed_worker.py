"""The same handlers in a worker whose wall clock is wrong by WORKER_SKEW_SECONDS."""

import os
from datetime import UTC, datetime, timedelta

from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob_worker import components
from asyncjob_worker.claiming import claimer
from asyncjob_worker.execution import attempt
from asyncjob_worker.leases import heartbeat, ownership
from support.apps.worker import app

__all__ = ["app"]

SKEW = timedelta(seconds=float(os.environ["WORKER_SKEW_SECONDS"]))


def skewed() -> str:
    """Return a wrong time."""
    return format_timestamp(datetime.now(UTC) + SKEW)


for module in (attempt, claimer, ownership, components, heartbeat):
    module.now_text = skewed  # type: ignore[attr-defined]
