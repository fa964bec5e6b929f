"""Waits until the API server enforces what was applied: it learns of policies and roles later."""

import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

from asyncjob.names import JOBS, collection_path, job_path, job_status_path
from support.cluster.api import Answer, Client
from support.objects.builders import job

PATIENCE = 20.0


def until(
    met: Callable[[Answer], bool],
    attempt: Callable[[], Answer],
    what: str,
    within: float = PATIENCE,
) -> Answer:
    """Repeat the attempt until its answer is as wanted."""
    give_up_at = time.monotonic() + within
    while not met(answer := attempt()):
        assert time.monotonic() < give_up_at, f"{what}: {answer.status} {answer.message}"
        time.sleep(0.1)
    return answer


def until_gone(admin: Client, path: str, within: float) -> None:
    """Wait until there is no such object."""
    what = f"{path} is gone"
    until(
        lambda found: found.status == HTTPStatus.NOT_FOUND, partial(admin.get, path), what, within
    )


def until_rules_hold(admin: Client) -> None:
    """Wait until a write that breaks a rule is refused by the policy that forbids it."""
    admin.create(collection_path("default", JOBS), job("rule-probe")).object()
    for policy, path, body in (
        ("lifecycle.", job_status_path("default", "rule-probe"), {"status": {"attempt": 9}}),
        ("spec.", job_path("default", "rule-probe"), {"spec": {"type": "other"}}),
    ):
        until(partial(_refused_by, policy), partial(admin.dry().merge, path, body), policy)
    admin.delete(job_path("default", "rule-probe")).object()


def until_managed_fields_are_dropped(admin: Client, namespace: str = "default") -> None:
    """Wait until a job that nobody applies would be created, and without managedFields."""
    attempt = partial(admin.dry().create, collection_path(namespace, JOBS), job("trial"))
    until(_is_untracked, attempt, "managedFields are dropped")


def until_granted(admin: Client, namespace: str, account: str, rule: dict[str, Any]) -> None:
    """Wait until the authorizer has seen the binding that gives an account this rule of a role."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{namespace}:{account}",
            "resourceAttributes": {
                "namespace": namespace,
                "group": rule["apiGroups"][0],
                "resource": rule["resources"][0],
                "verb": rule["verbs"][0],
                "name": rule.get("resourceNames", [""])[0],
            },
        },
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    ask = partial(admin.create, path, review)
    until(lambda answer: bool(answer.object()["status"]["allowed"]), ask, f"rights of {account}")


def _refused_by(policy: str, answer: Answer) -> bool:
    return f"'{policy}" in answer.message


def _is_untracked(answer: Answer) -> bool:
    return answer.accepted and "managedFields" not in answer.body["metadata"]
