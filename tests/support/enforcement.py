"""Waits until the API server enforces what was applied: policies take it a second or two."""

import time
from collections.abc import Callable
from functools import partial

from asyncjob.names import JOBS, collection, job_path, job_status_path
from support.api import Answer, Client
from support.builders import job

PATIENCE = 20.0


def until(met: Callable[[Answer], bool], attempt: Callable[[], Answer], what: str) -> Answer:
    """Repeat the attempt until its answer is as wanted."""
    give_up_at = time.monotonic() + PATIENCE
    while not met(answer := attempt()):
        assert time.monotonic() < give_up_at, f"{what}: {answer.status} {answer.message}"
        time.sleep(0.1)
    return answer


def until_laws_hold(admin: Client) -> None:
    """Wait until a write that breaks a law is refused by the policy that forbids it."""
    admin.create(collection("default", JOBS), job("law-probe")).object()
    for policy, path, body in (
        ("lifecycle.", job_status_path("default", "law-probe"), {"status": {"attempt": 9}}),
        ("spec.", job_path("default", "law-probe"), {"spec": {"type": "other"}}),
    ):
        until(partial(_refused_by, policy), partial(admin.dry().merge, path, body), policy)
    admin.delete(job_path("default", "law-probe")).object()


def _refused_by(policy: str, answer: Answer) -> bool:
    return f"'{policy}" in answer.message
