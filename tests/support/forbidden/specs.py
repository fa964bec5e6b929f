"""What of a spec cannot be changed, not even by the admin."""

from collections.abc import Callable
from typing import Any, Final

from asyncjob.lifecycle.phases import Phase
from asyncjob.names import CRON_JOBS, JOBS, collection_path
from support.cluster.api import Answer
from support.forbidden.case import NUMBERS, Case, ForbiddenSetup
from support.objects.builders import at, cron_job, job

BEFORE_AND_AFTER: Final[dict[str, tuple[Any, Any]]] = {
    "type": ("test", "other"),
    "queue": ("default", "other"),
    "payload": ({"y": 999}, {"x": 999}),
    "payloadFrom": ({"uri": "s3://a"}, {"uri": "s3://b"}),
    "request": ({"headers": {"a": ["1"]}}, {"headers": {"b": ["1"]}}),
    "notBefore": (at(), at(1)),
    "notAfter": (at(), None),
    "deadlineSeconds": (60, 61),
    "dependsOn": ([{"name": "a"}], [{"name": "b"}]),
    "queueTimeoutSeconds": (None, 5),
    "executionTimeoutSeconds": (5, 6),
    "leaseDurationSeconds": (5, 6),
    "cancelGraceSeconds": (5, None),
    "retryPolicy": ({"maxRetries": 1}, {"maxRetries": 2}),
    "ttlSecondsAfterFinished": (5, 6),
    "idempotencyKey": ("a", "b"),
    "deduplicationId": ("a", None),
    "concurrencyKey": (None, "b"),
    "rerunOf": ({"name": "a", "uid": "b"}, {"name": "a", "uid": "c"}),
    "traceparent": ("a", "b"),
}


def _changed(field: str) -> Case:
    before, after = BEFORE_AND_AFTER[field]

    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(**({} if before is None else {field: before}))
        spec = life.read()["spec"]
        path = f"/spec/{field}"
        operation = {"op": "remove", "path": path}
        if after is not None:
            operation = {"op": "replace" if field in spec else "add", "path": path, "value": after}
        return setup.acting(setup.space.admin).patch(life.path, [operation])

    return Case(f"spec.fixed.{field}", f"another {field}", attempt)


def _control(
    rule: str, title: str, phase: Phase, before: dict[str, Any], after: dict[str, Any]
) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(phase)
        if before:
            life.change_spec(**before).object()
        return setup.acting(setup.space.admin).merge(life.path, {"spec": after})

    return Case(rule, title, attempt)


def _created(title: str, body: Callable[[str], dict[str, Any]], plural: str = JOBS) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        path = collection_path(setup.space.name, plural)
        return setup.acting(setup.space.admin).create(path, body(f"case-{next(NUMBERS)}"))

    return Case("control.not-at-creation", title, attempt)


def _selfish(title: str, needs: Callable[[str], list[Any]]) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        path, name = collection_path(setup.space.name, JOBS), f"case-{next(NUMBERS)}"
        return setup.acting(setup.space.admin).create(path, job(name, dependsOn=needs(name)))

    return Case("spec.depends-on-others", title, attempt)


def _rescheduled(setup: ForbiddenSetup) -> Answer:
    path, name = collection_path(setup.space.name, CRON_JOBS), f"case-{next(NUMBERS)}"
    setup.space.admin.create(path, cron_job(name)).object()
    body = {"spec": {"jobTemplate": {"spec": {"redrive": 1}}}}
    return setup.acting(setup.space.admin).merge(f"{path}/{name}", body)


SPECS: Final[tuple[Case, ...]] = (
    *(_changed(field) for field in BEFORE_AND_AFTER),
    _control(
        "control.cancel-latches",
        "a cancel taken back",
        Phase.QUEUED,
        {"cancel": True},
        {"cancel": False},
    ),
    _control(
        "control.cancel-latches",
        "a cancel removed",
        Phase.QUEUED,
        {"cancel": True},
        {"cancel": None},
    ),
    _control(
        "control.cancel-too-late", "a cancel after success", Phase.SUCCEEDED, {}, {"cancel": True}
    ),
    _control(
        "control.redrive-grows",
        "a redrive lowered",
        Phase.DEAD_LETTER,
        {"redrive": 2},
        {"redrive": 1},
    ),
    _control(
        "control.redrive-dead-letter", "a redrive of a queued job", Phase.QUEUED, {}, {"redrive": 1}
    ),
    _control(
        "control.redrive-dead-letter", "a redrive of success", Phase.SUCCEEDED, {}, {"redrive": 1}
    ),
    _control(
        "control.rerun-grows", "a rerun lowered", Phase.SUCCEEDED, {"rerun": 2}, {"rerun": None}
    ),
    _created("a job created with a redrive", lambda name: job(name, redrive=1)),
    _created("a job created with a rerun", lambda name: job(name, rerun=1)),
    _created("a cron job of reruns", lambda name: cron_job(name, rerun=1), CRON_JOBS),
    Case("control.not-at-creation", "a cron job that comes to redrive", _rescheduled),
    _selfish("a job that depends on itself", lambda name: [{"name": name}]),
    _selfish(
        "a job that depends on itself among others",
        lambda name: [{"name": "a"}, {"name": name, "outcome": "Any"}],
    ),
    _control(
        "control.priority", "another priority while it runs", Phase.RUNNING, {}, {"priority": 9}
    ),
)
