"""Cron jobs that are wrong, and changes of both queues and them that take more than a right."""

from typing import Any, Final

from asyncjob.names import CRON_JOBS, QUEUES, collection_path
from support.cluster.api import Answer, Client
from support.forbidden.case import NUMBERS, Case, ForbiddenSetup
from support.forbidden.removals import gateway, new_cron_job, new_queue
from support.objects.builders import at, cron_job, queue

_NOTHING_KEPT: Final = {"maxAgeSeconds": 0, "minAgeSeconds": 0, "maxFinished": 0}
_RULE: Final = {
    "apiGroups": ["asyncjob.dev"],
    "resources": [QUEUES, "asynccronjobs"],
    "verbs": ["create", "update", "patch"],
}


def _author(setup: ForbiddenSetup) -> Client:
    """Return who may update queues and cron jobs, but delete no jobs."""
    name = f"author-{next(NUMBERS)}"
    setup.space.grant(name, _RULE)
    return setup.space.as_account(name)


def _created(setup: ForbiddenSetup) -> Answer:
    body = queue(f"queue-{next(NUMBERS)}", retention=_NOTHING_KEPT)
    return setup.acting(_author(setup)).create(collection_path(setup.space.name, QUEUES), body)


def _created_with(title: str, **spec: Any) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        body = queue(f"queue-{next(NUMBERS)}", **spec)
        return setup.acting(gateway(setup)).create(collection_path(setup.space.name, QUEUES), body)

    return Case("settings.changed", title, attempt)


def _kept(title: str, *, of_queue: bool, **spec: Any) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        path = new_queue(setup) if of_queue else new_cron_job(setup)
        return setup.acting(_author(setup)).merge(path, {"spec": spec})

    return Case("settings.keeping", title, attempt)


def _retention_taken_away(setup: ForbiddenSetup) -> Answer:
    path = new_queue(setup, retention={"maxAgeSeconds": 99_999_999})
    return setup.acting(_author(setup)).merge(path, {"spec": {"retention": None}})


def _changed(title: str, *, of_queue: bool, **spec: Any) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        path = new_queue(setup) if of_queue else new_cron_job(setup)
        return setup.acting(gateway(setup)).merge(path, {"spec": spec})

    return Case("settings.changed", title, attempt)


def _limit_taken_away(setup: ForbiddenSetup) -> Answer:
    path = new_queue(setup, maxConcurrency=1)
    return setup.acting(gateway(setup)).merge(path, {"spec": {"maxConcurrency": None}})


SETTINGS: Final = (
    Case("settings.keeping", "a queue created that keeps nothing", _created),
    _kept("a queue that comes to keep nothing", of_queue=True, retention=_NOTHING_KEPT),
    Case("settings.keeping", "a queue that no longer keeps", _retention_taken_away),
    _kept("a cron job that keeps no success", of_queue=False, successfulJobsHistoryLimit=0),
    _kept("a cron job that keeps no failure", of_queue=False, failedJobsHistoryLimit=0),
    _changed("a limit", of_queue=True, maxConcurrency=1),
    _changed("a limit together with a pause", of_queue=True, paused=True, maxConcurrency=1),
    Case("settings.changed", "a limit taken away", _limit_taken_away),
    _created_with("a queue created with a limit", maxConcurrency=1),
    _created_with("a queue created paused, with a limit", paused=True, maxConcurrency=1),
    _created_with("a queue created that gives jobs up", unknownType="DeadLetter"),
    _changed("another schedule", of_queue=False, schedule="@daily"),
    _changed("other jobs", of_queue=False, jobTemplate={"spec": {"type": "other"}}),
    _changed("another payload", of_queue=False, jobTemplate={"spec": {"payload": {"a": 1}}}),
)


def _cron_job(rule: str, title: str, **spec: Any) -> Case:
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
    _cron_job("cron.schedule", "six fields", schedule="0 0 3 * * *"),
    _cron_job("cron.schedule", "an unknown word", schedule="@often"),
    _cron_job("cron.minute", "a 60th minute", schedule="60 * * * *"),
    _cron_job("cron.minute", "a step of nothing", schedule="*/0 * * * *"),
    _cron_job("cron.hour", "a 24th hour", schedule="* 24 * * *"),
    _cron_job("cron.hour", "a hashed range beyond the day", schedule="* H(0-24) * * *"),
    _cron_job("cron.day", "a day before the first", schedule="* * 0 * *"),
    _cron_job("cron.month", "a month nobody knows", schedule="* * * FOO *"),
    _cron_job("cron.weekday", "an eighth weekday", schedule="* * * * 8"),
    _cron_job("cron.weekday", "a sixth Monday", schedule="* * * * MON#6"),
    _cron_job("cron.backfill-range", "a range backwards", backfill={"from": at(1), "to": at(0)}),
    _trigger(2),
    _trigger(None),
    Case("cron.settled", "a settled time that goes back", _settled_back),
)
