"""Ways to have a job removed, or kept, by who may change it but not delete it: a gateway."""

from functools import cache
from typing import Any, Final

from asyncjob.lifecycle.phases import Phase
from asyncjob.names import (
    BACKFILL_LABEL,
    CRON_JOB_LABEL,
    CRON_JOB_UID_LABEL,
    CRON_JOBS,
    JOBS,
    PARENT_LABEL,
    QUEUES,
    SCHEDULED_TIME_ANNOTATION,
    TRIGGER_ANNOTATION,
    collection_path,
)
from support.cluster.api import Answer, Client
from support.cluster.identities import Space
from support.forbidden.case import NUMBERS, Case, ForbiddenSetup
from support.objects.builders import cron_job, job, queue

_OWNER: Final = {
    "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "no-such-uid"}
    ]
}
_FINALIZER: Final = {"finalizers": ["example.org/kept"]}


ADMINISTRATOR_WHO_DELETES: Final = ("asyncjob-job-admin", "asyncjob-job-deleter")
"""What Kubernetes' own `admin` has of the project's roles."""


@cache
def member(space: Space, *roles: str) -> Client:
    """Return an account with some of the project's roles in the namespace."""
    name = f"{roles[0]}-{next(NUMBERS)}"
    space.account(name)
    for role in roles:
        space.bind(name, role, called=f"{name}-{role}")
    return space.as_account(name)


def gateway(setup: ForbiddenSetup) -> Client:
    """Return who may change jobs, queues and cron jobs, and delete none."""
    return member(setup.space, "asyncjob-gateway")


def new_queue(setup: ForbiddenSetup, **spec: Any) -> str:
    """Create a queue and return its path."""
    name, path = f"queue-{next(NUMBERS)}", collection_path(setup.space.name, QUEUES)
    setup.space.admin.create(path, queue(name, **spec)).object()
    return f"{path}/{name}"


def new_cron_job(setup: ForbiddenSetup) -> str:
    """Create a cron job and return its path."""
    name, path = f"cron-{next(NUMBERS)}", collection_path(setup.space.name, CRON_JOBS)
    setup.space.admin.create(path, cron_job(name)).object()
    return f"{path}/{name}"


def _on_job(rule: str, title: str, metadata: dict[str, Any]) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        path = setup.life().path
        return setup.acting(gateway(setup)).merge(path, {"metadata": metadata})

    return Case(rule, f"{title} on {JOBS}", attempt)


def _on_queue(rule: str, title: str, metadata: dict[str, Any]) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        return setup.acting(gateway(setup)).merge(new_queue(setup), {"metadata": metadata})

    return Case(rule, f"{title} on {QUEUES}", attempt)


def _created(rule: str, title: str, metadata: dict[str, Any]) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        body = job(f"case-{next(NUMBERS)}")
        body["metadata"] |= metadata
        submitter = member(setup.space, "asyncjob-job-submitter")
        return setup.acting(submitter).create(collection_path(setup.space.name, JOBS), body)

    return Case(rule, f"a job created with {title}", attempt)


def _queue_created_with_a_finalizer(setup: ForbiddenSetup) -> Answer:
    body = queue(f"queue-{next(NUMBERS)}")
    body["metadata"] |= _FINALIZER
    return setup.acting(gateway(setup)).create(collection_path(setup.space.name, QUEUES), body)


def _finalizer_by_an_administrator(setup: ForbiddenSetup) -> Answer:
    who = member(setup.space, *ADMINISTRATOR_WHO_DELETES)
    return setup.acting(who).merge(setup.life().path, {"metadata": _FINALIZER})


def _reported(title: str, **changes: Any) -> Case:
    """Return a change of what managedFields has of a finished job's status; None: the entry."""

    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(Phase.SUCCEEDED)
        entries = life.read()["metadata"]["managedFields"]
        others = [entry for entry in entries if entry.get("subresource") != "status"]
        theirs = [{**entry, **changes} for entry in entries if entry not in others]
        told = [*others, *(theirs if changes else [])]
        # With a label: alone the API server takes a later time for no change at all.
        metadata = {"labels": {"a": "b"}, "managedFields": told}
        return setup.acting(gateway(setup)).merge(life.path, {"metadata": metadata})

    return Case("removal.reports", title, attempt)


def _reported_by_an_administrator(setup: ForbiddenSetup) -> Answer:
    life = setup.life(Phase.SUCCEEDED)
    entries = life.read()["metadata"]["managedFields"]
    told = [entry for entry in entries if entry.get("subresource") != "status"]
    who = member(setup.space, *ADMINISTRATOR_WHO_DELETES)
    return setup.acting(who).merge(life.path, {"metadata": {"managedFields": told}})


_RUN: Final = ({"labels": {key: "x"}} for key in (CRON_JOB_LABEL, CRON_JOB_UID_LABEL))
_BACKFILLED: Final = {"labels": {BACKFILL_LABEL: "true"}}
_TIMED: Final = {"annotations": {SCHEDULED_TIME_ANNOTATION: "2026-01-01T00:00:00Z"}}
_TRIGGERED: Final = {"annotations": {TRIGGER_ANNOTATION: "1"}}

REMOVALS: Final = (
    *(
        case
        for rule, title, metadata in (
            ("removal.owners", "an owner that is gone", _OWNER),
            ("removal.finalizers", "a finalizer", _FINALIZER),
        )
        for case in (_on_job(rule, title, metadata), _on_queue(rule, title, metadata))
    ),
    _created("removal.finalizers", "a finalizer", _FINALIZER),
    Case("removal.finalizers", "a queue created with one", _queue_created_with_a_finalizer),
    Case("removal.finalizers", "one by who may delete", _finalizer_by_an_administrator),
    *(
        case
        for number, metadata in enumerate((*_RUN, _BACKFILLED, _TIMED, _TRIGGERED), 1)
        for case in (
            _created("removal.run-metadata", f"mark {number} of a run", metadata),
            _on_job("removal.run-metadata", f"mark {number} of a run", metadata),
        )
    ),
    _on_job("removal.run-metadata", "another parent", {"labels": {PARENT_LABEL: "x"}}),
    _reported("a report from the future", time="9999-01-01T00:00:00Z"),
    _reported("a report from long ago", time="0000-01-01T00:00:00Z"),
    _reported("a report by another", manager="forger"),
    _reported("a report that never was"),
    Case("removal.reports", "one taken away by who may delete", _reported_by_an_administrator),
)
