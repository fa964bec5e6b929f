"""Sending signals: the same by every client, and refused in the same cases."""

from typing import Any

import pytest

from asyncjob.client import Jobs
from asyncjob.client.errors import InvalidRequestError, JobNotFoundError, JobStateError
from asyncjob.lifecycle.signals import MAX_SIGNAL_BYTES, MAX_SIGNALS
from contract.clients.full_stack import CALLER, ScenarioScope

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

WITHIN = 30.0


def test_a_signal_is_sent_once_in_the_callers_name(jobs: Jobs, scope: ScenarioScope) -> None:
    job = jobs.submit("echo", queue=scope.queue).id
    payload: dict[str, Any] = {"ok": True, "none": None, "list": [1, 2.5, "ü"]}
    [sent] = jobs.signal(job, "approval", payload).signals
    assert (sent.name, sent.payload) == ("approval", payload)
    assert sent.sent_by == f"system:serviceaccount:{scope.full_stack.namespace}:{CALLER}"
    assert sent.sent_at
    [again] = jobs.signal(job, "approval", payload).signals
    assert again == sent
    with pytest.raises(JobStateError, match="has been sent approval by"):
        jobs.signal(job, "approval", {"ok": False})
    more = jobs.signal(job, "more").signals
    assert [(one.name, one.payload) for one in more] == [("approval", payload), ("more", None)]
    assert jobs.get(job).signals == more


@pytest.mark.parametrize(
    ("name", "payload", "said"),
    [
        ("no name", 1, "signal"),
        ("", 1, "signal"),
        ("x" * 64, 1, "signal"),
        ("approval", "x" * MAX_SIGNAL_BYTES, "payload"),
        ("approval", float("inf"), "payload"),
    ],
)
def test_what_no_signal_can_be_is_refused_by_its_field(
    jobs: Jobs, scope: ScenarioScope, name: str, payload: Any, said: str
) -> None:
    job = jobs.submit("echo", queue=scope.queue).id
    with pytest.raises(InvalidRequestError, match=said):
        jobs.signal(job, name, payload)
    assert jobs.get(job).signals == []


def test_jobs_that_take_no_signal_are_named(jobs: Jobs, scope: ScenarioScope) -> None:
    with pytest.raises(JobNotFoundError, match="nobody"):
        jobs.signal("nobody", "approval")
    done = jobs.submit("echo", 1)
    jobs.wait(done.id, WITHIN, raise_on_failure=True)
    with pytest.raises(JobStateError, match=f"job {done.id} is Succeeded"):
        jobs.signal(done.id, "approval")
    full = jobs.submit("echo", queue=scope.queue).id
    for number in range(MAX_SIGNALS):
        jobs.signal(full, f"signal-{number}", number)
    with pytest.raises(JobStateError, match=f"{MAX_SIGNALS} signals"):
        jobs.signal(full, "one-more")
