"""Cron jobs that are wrong by themselves, or that go back on what they were."""

from typing import Any, Final

from asyncjob.names import CRON_JOBS, collection_path
from support.cluster.api import Answer
from support.forbidden.case import NUMBERS, Case, ForbiddenSetup
from support.objects.builders import at, cron_job


def _created(rule: str, title: str, **spec: Any) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        body = cron_job(f"case-{next(NUMBERS)}")
        body["spec"] |= spec
        return setup.acting(setup.space.admin).create(
            collection_path(setup.space.name, CRON_JOBS), body
        )

    return Case(rule, title, attempt)


def _settled_back(setup: ForbiddenSetup) -> Answer:
    path, name = collection_path(setup.space.name, CRON_JOBS), f"case-{next(NUMBERS)}"
    setup.space.admin.create(path, cron_job(name)).object()
    later, earlier = ({"status": {"settledTime": at(time)}} for time in (60, 0))
    setup.operator.merge(f"{path}/{name}/status", later).object()
    return setup.acting(setup.operator).merge(f"{path}/{name}/status", earlier)


def _trigger(value: int | None) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        path, name = collection_path(setup.space.name, CRON_JOBS), f"case-{next(NUMBERS)}"
        body = cron_job(name)
        body["spec"]["trigger"] = 3
        setup.space.admin.create(path, body).object()
        change = {"spec": {"trigger": value}}
        return setup.acting(setup.space.admin).merge(f"{path}/{name}", change)

    return Case("cron.trigger-grows", f"a trigger that becomes {value}", attempt)


CRONS: Final[tuple[Case, ...]] = (
    _created("cron.schedule", "six fields", schedule="0 0 3 * * *"),
    _created("cron.schedule", "an unknown word", schedule="@often"),
    _created("cron.minute", "a 60th minute", schedule="60 * * * *"),
    _created("cron.minute", "a step of nothing", schedule="*/0 * * * *"),
    _created("cron.hour", "a 24th hour", schedule="* 24 * * *"),
    _created("cron.hour", "a hashed range beyond the day", schedule="* H(0-24) * * *"),
    _created("cron.day", "a day before the first", schedule="* * 0 * *"),
    _created("cron.month", "a month nobody knows", schedule="* * * FOO *"),
    _created("cron.weekday", "an eighth weekday", schedule="* * * * 8"),
    _created("cron.weekday", "a sixth Monday", schedule="* * * * MON#6"),
    _created("cron.backfill-range", "a range backwards", backfill={"from": at(1), "to": at(0)}),
    _trigger(2),
    _trigger(None),
    Case("cron.settled", "a settled time that goes back", _settled_back),
)
