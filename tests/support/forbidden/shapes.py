"""Objects that are wrong by themselves."""

from typing import Any, Final

from asyncjob.names import CRON_JOBS, JOBS, QUEUES, collection_path
from support.cluster.api import Answer
from support.forbidden.case import NUMBERS, Case, ForbiddenSetup
from support.objects.builders import at, cron_job, job, queue

_DELAYS: Final = {"initialDelaySeconds": 10, "maxDelaySeconds": 9}


def _job(rule: str, title: str, **spec: Any) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        path = collection_path(setup.space.name, JOBS)
        return setup.acting(setup.space.admin).create(path, job(f"case-{next(NUMBERS)}", **spec))

    return Case(rule, title, attempt)


def _queue(setup: ForbiddenSetup) -> Answer:
    path = collection_path(setup.space.name, QUEUES)
    body = queue(f"case-{next(NUMBERS)}", defaults={"retryPolicy": _DELAYS})
    return setup.acting(setup.space.admin).create(path, body)


def _cron(setup: ForbiddenSetup) -> Answer:
    path = collection_path(setup.space.name, CRON_JOBS)
    body = cron_job(f"case-{next(NUMBERS)}", notBefore=at(2), notAfter=at(1))
    return setup.acting(setup.space.admin).create(path, body)


def _back_in_time(setup: ForbiddenSetup) -> Answer:
    path = collection_path(setup.space.name, CRON_JOBS)
    name = f"case-{next(NUMBERS)}"
    setup.space.admin.create(path, cron_job(name)).object()
    status_path = f"{path}/{name}/status"
    later, earlier = ({"status": {"lastScheduleTime": at(time)}} for time in (60, 0))
    setup.operator.merge(status_path, later).object()
    return setup.acting(setup.operator).merge(status_path, earlier)


SHAPES: Final[tuple[Case, ...]] = (
    _job(
        "shape.one-source",
        "two sources",
        payloadFrom={
            "uri": "s3://a",
            "configMapKeyRef": {"name": "a", "key": "b"},
        },
    ),
    _job("shape.one-source", "no source", payloadFrom={}),
    _job("shape.deadline", "a deadline before the start", notBefore=at(2), notAfter=at(1)),
    _job("shape.deadline", "a deadline at the start", notBefore=at(2), notAfter=at(2)),
    Case("shape.deadline", "a cron job of such jobs", _cron),
    _job(
        "shape.dependencies",
        "one job twice",
        dependsOn=[
            {"name": "a"},
            {"name": "b"},
            {"name": "a", "outcome": "Any"},
        ],
    ),
    _job("shape.dependency", "neither a job nor an array", dependsOn=[{"outcome": "Any"}]),
    _job("shape.dependency", "a job and an array", dependsOn=[{"name": "a", "array": "a"}]),
    _job("shape.dependency", "children of an array", dependsOn=[{"array": "a", "children": True}]),
    _job("shape.delays", "a cap below the first delay", retryPolicy=_DELAYS),
    Case("shape.delays", "a queue with such a cap", _queue),
    Case("cron.advances", "a cron job that goes back in time", _back_in_time),
)
