"""Payloads from what the author of a job may not read."""

from typing import Any, Final

from asyncjob.names import CRON_JOBS, GROUP, JOBS, collection_path, job_path
from support.cluster.api import Answer, Client
from support.forbidden.case import NUMBERS, Case, ForbiddenSetup
from support.objects.builders import at, cron_job, job

AUTHOR_RULE: Final = {
    "apiGroups": [GROUP],
    "resources": [JOBS, CRON_JOBS],
    "verbs": ["get", "create", "patch"],
}
# What is more than a patch may change is forbidden by another policy, and either may be reported.
EDITOR_RULE: Final = {**AUTHOR_RULE, "verbs": ["get", "create", "patch", "update"]}
SECRET: Final = {"secretKeyRef": {"name": "hidden", "key": "payload"}}
CONFIG_MAP: Final = {"configMapKeyRef": {"name": "hidden", "key": "payload"}}


def _author(setup: ForbiddenSetup, rule: Any = AUTHOR_RULE) -> Client:
    name = f"author-{next(NUMBERS)}"
    setup.space.grant(name, rule)
    return setup.space.as_account(name)


def _job(**spec: Any) -> Any:
    def attempt(setup: ForbiddenSetup) -> Answer:
        path = collection_path(setup.space.name, JOBS)
        return setup.acting(_author(setup)).create(path, job(f"case-{next(NUMBERS)}", **spec))

    return attempt


def _cron(**template: Any) -> Any:
    def attempt(setup: ForbiddenSetup) -> Answer:
        path = collection_path(setup.space.name, CRON_JOBS)
        body = cron_job(f"case-{next(NUMBERS)}", **template)
        return setup.acting(_author(setup)).create(path, body)

    return attempt


def _rerun(setup: ForbiddenSetup) -> Answer:
    name = f"case-{next(NUMBERS)}"
    body = job(name, payloadFrom=SECRET)
    setup.space.admin.create(collection_path(setup.space.name, JOBS), body).object()
    path = job_path(setup.space.name, name)
    return setup.acting(_author(setup)).merge(path, {"spec": {"rerun": 1}})


def _cron_of_another_type(setup: ForbiddenSetup) -> Answer:
    path = collection_path(setup.space.name, CRON_JOBS)
    name = f"case-{next(NUMBERS)}"
    setup.space.admin.create(path, cron_job(name, payloadFrom=SECRET)).object()
    change = {"spec": {"jobTemplate": {"spec": {"type": "print"}}}}
    return setup.acting(_author(setup, EDITOR_RULE)).merge(f"{path}/{name}", change)


def _cron_change(**control: Any) -> Any:
    def attempt(setup: ForbiddenSetup) -> Answer:
        path, name = collection_path(setup.space.name, CRON_JOBS), f"case-{next(NUMBERS)}"
        setup.space.admin.create(path, cron_job(name, payloadFrom=SECRET)).object()
        return setup.acting(_author(setup)).merge(f"{path}/{name}", {"spec": control})

    return attempt


_RANGE: Final = {"from": at(0), "to": at(3600)}

SOURCES: Final[tuple[Case, ...]] = (
    Case("source.secrets", "a job from a secret its author may not read", _job(payloadFrom=SECRET)),
    Case("source.secrets", "a cron job with such a secret", _cron(payloadFrom=SECRET)),
    Case("source.secrets", "a rerun of a job with such a secret", _rerun),
    Case("source.secrets", "another handler for such a secret", _cron_of_another_type),
    Case("source.secrets", "a trigger of such a cron job", _cron_change(trigger=1)),
    Case("source.secrets", "a backfill of such a cron job", _cron_change(backfill=_RANGE)),
    Case("source.configmaps", "a job from such a config map", _job(payloadFrom=CONFIG_MAP)),
    Case("source.configmaps", "a cron job with such a config map", _cron(payloadFrom=CONFIG_MAP)),
    Case(
        "source.payload-once",
        "a job with a payload and a source",
        _job(payload={"a": 1}, payloadFrom={"uri": "s3://a"}),
    ),
    Case(
        "source.payload-once",
        "a cron job with a payload and a source",
        _cron(payload={"a": 1}, payloadFrom={"uri": "s3://a"}),
    ),
)
