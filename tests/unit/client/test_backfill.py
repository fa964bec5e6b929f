"""When a cron job is asked for the runs of times gone by, and when not."""

from typing import Any

import pytest

from asyncjob.client import JobsClient
from asyncjob.client.connection import Answer, Call
from asyncjob.client.errors import InvalidRequestError, JobStateError
from asyncjob.client.kubernetes.calls import KubernetesCalls
from asyncjob.client.kubernetes.cron_jobs import backfill
from asyncjob.client.options import build_backfill
from asyncjob.rest.resources import BackfillAsk
from support.in_memory.fake_api import MemoryConnection, Step, run

SPAN = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}
OTHER = {"from": "2025-01-01T00:00:00Z", "to": "2025-01-02T00:00:00Z"}


class Schedules(MemoryConnection):
    """A server with one cron job."""

    def __init__(self, there: dict[str, Any]) -> None:
        self.there = there
        self.written: Any = None

    def do(self, step: Step) -> Answer:
        if isinstance(step, Call) and step.method == "PATCH":
            self.written = step.body
            return Answer({**self.there, "status": {}})
        return Answer(self.there)


def written(cron_job: dict[str, Any], *, replace: bool = False) -> Any:
    """Return the change that is made of a cron job in this state, None for none."""
    spec = {
        "schedule": "@daily",
        "jobTemplate": {"spec": {"type": "t"}},
        **cron_job.get("spec", {}),
    }
    there = {"metadata": {"name": "n", "namespace": "s", "resourceVersion": "7"}, **cron_job}
    there["spec"] = spec
    server = Schedules(there)
    run(
        backfill(
            KubernetesCalls(server, patience=0), "s", "n", BackfillAsk(**SPAN, replace=replace)
        )
    )
    return server.written


def test_the_request_is_exact_on_the_schedule_as_it_was_read() -> None:
    assert written({}) == {
        "metadata": {"resourceVersion": "7"},
        "spec": {"backfill": {**SPAN, "limit": 100, "maxActive": 1}},
    }


@pytest.mark.parametrize("status", [{}, {**OTHER, "completed": False}, {**SPAN, "completed": True}])
def test_an_earlier_one_under_way_is_replaced_only_if_asked(status: dict[str, Any]) -> None:
    there = {"spec": {"backfill": OTHER}, "status": {"backfill": status}}
    with pytest.raises(JobStateError, match="2025-01-01T00:00:00Z to 2025-01-02T00:00:00Z"):
        written(there)
    assert written(there, replace=True)["spec"]["backfill"]["from"] == SPAN["from"]


def test_one_that_is_done_makes_room_for_another() -> None:
    assert written(
        {"spec": {"backfill": OTHER}, "status": {"backfill": {**OTHER, "completed": True}}}
    )


def test_the_same_request_is_written_once() -> None:
    assert written({"spec": {"backfill": {**SPAN, "limit": 100, "maxActive": 1}}}) is None


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"end": "2025-12-31T00:00:00Z"}, "to must not be before from"),
        ({"start": "yesterday"}, "from: "),
        ({"end": "2026-02-30T00:00:00Z"}, "not a valid time: 2026-02-30"),
        ({"limit": 1001}, "limit: 1001 is not an integer from 1 to 1000"),
        ({"max_active": 0}, "max_active: 0"),
    ],
)
def test_what_makes_no_sense_is_not_sent(asked: dict[str, Any], said: str) -> None:
    whole = {
        "start": SPAN["from"],
        "end": SPAN["to"],
        "limit": 1,
        "max_active": 1,
        "replace": False,
        **asked,
    }
    with pytest.raises(InvalidRequestError, match=said):
        build_backfill(**whole)
    assert callable(JobsClient.backfill)
