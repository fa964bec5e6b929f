"""Cron jobs on a real API server, and operators with clocks of their own to run them."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob.names import (
    CRON_JOB_LABEL,
    CRON_JOBS,
    JOBS,
    SCHEDULED_TIME_ANNOTATION,
    collection_path,
    cron_job_path,
    cron_job_status_path,
)
from asyncjob_dev.api import Object
from support.driven.jobs import Jobs, until
from support.objects.builders import cron_job
from support.processes.operator import OperatorProcess

NEVER_DUE = "0 0 29 2 *"
"""A cron job that does not come up while a test runs, but on a leap day."""


def minutes_ago(minutes: float) -> str:
    """Return the start of a minute so many minutes ago."""
    return format_timestamp(
        (datetime.now(UTC) - timedelta(minutes=minutes)).replace(second=0, microsecond=0)
    )


def hourly() -> str:
    """Return an hourly cron job that does not come up for half an hour."""
    return f"{(datetime.now(UTC).minute + 30) % 60} * * * *"


class Crons:
    """The cron jobs of one namespace, with the admin's rights."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self.api = jobs.api

    def create(self, name: str, *, status: Object | None = None, **spec: Any) -> Object:
        """Create a cron job; with a status it is suspended until that is written."""
        body = cron_job(name)
        body["spec"] |= {"schedule": NEVER_DUE, **spec}
        if status is None:
            return self.api.create(collection_path(self.jobs.namespace, CRON_JOBS), body)
        suspended = {**body, "spec": {**body["spec"], "suspend": True}}
        self.api.create(collection_path(self.jobs.namespace, CRON_JOBS), suspended)
        observed = {"schedule": body["spec"]["schedule"], "timeZone": spec.get("timeZone", "UTC")}
        whole = {"observed": {**observed, "suspend": False}, **status}
        self.api.merge(cron_job_status_path(self.jobs.namespace, name), {"status": whole})
        return self.change(name, suspend=spec.get("suspend", False))

    def change(self, name: str, **spec: Any) -> Object:
        """Change the spec."""
        return self.api.merge(cron_job_path(self.jobs.namespace, name), {"spec": spec})

    def get(self, name: str) -> Object:
        """Return the cron job."""
        return self.api.get(cron_job_path(self.jobs.namespace, name))

    def status(self, name: str) -> Object:
        """Return its status."""
        status: Object = self.get(name).get("status", {})
        return status

    def runs(self, name: str) -> list[Object]:
        """Return its jobs, by name."""
        answer = self.api.get(
            collection_path(self.jobs.namespace, JOBS), labelSelector=f"{CRON_JOB_LABEL}={name}"
        )
        return sorted(answer["items"], key=lambda job: str(job["metadata"]["name"]))

    def names(self, name: str) -> list[str]:
        """Return the names of its jobs."""
        return [job["metadata"]["name"] for job in self.runs(name)]

    def until_runs(self, name: str, count: int, within: float = 15.0) -> list[Object]:
        """Return its jobs once there are so many."""
        return until(lambda: _if(self.runs(name), count), within, f"{count} runs of {name}")

    def until_status(self, name: str, within: float = 15.0, **fields: Any) -> Object:
        """Return the status once it has these values."""

        def probe() -> Object | None:
            status = self.status(name)
            return (
                status if all(status.get(key) == value for key, value in fields.items()) else None
            )

        return until(probe, within, f"{fields} of {name}")

    def until_quiet(self, name: str, seconds: float = 1.0) -> Object:
        """Return the status once it has not changed for so long."""
        seen, since = self.get(name), time.monotonic()
        give_up_at = since + 20
        while time.monotonic() - since < seconds:
            assert time.monotonic() < give_up_at, "the status never comes to rest"
            time.sleep(0.1)
            now = self.get(name)
            if now != seen:
                seen, since = now, time.monotonic()
        status: Object = seen["status"]
        return status


def _if(runs: list[Object], count: int) -> list[Object] | None:
    return runs if len(runs) == count else None


def times_of(runs: list[Object]) -> list[str]:
    """Return the scheduled times of jobs."""
    return [run["metadata"]["annotations"][SCHEDULED_TIME_ANNOTATION] for run in runs]


class SkewedOperator(OperatorProcess):
    """An operator whose wall clock the test sets; of its machine alone, or whatever it asks."""

    def __init__(
        self, kubeconfig: Path, log: Path, *options: str, skew: float = 0.0, of: str = "all"
    ) -> None:
        super().__init__(kubeconfig, log, *options)
        self._skew = log.with_suffix(".skew")
        self.set_clock(skew)
        told = {"OPERATOR_SKEW_FILE": str(self._skew), "OPERATOR_SKEW_OF": of}
        self.run_module("support.programs.skewed_operator", told)

    def set_clock(self, seconds: float) -> None:
        """Put the wall clock wrong by so many seconds."""
        fresh = self._skew.with_suffix(".new")
        fresh.write_text(str(seconds))
        fresh.replace(self._skew)
