"""Asking things of jobs that change meanwhile, and answers that are lost."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from asyncjob.client.driving import run
from asyncjob.client.errors import (
    JobNotFoundError,
    JobStateError,
    NotADeadLetterError,
    NotCancellableError,
    UnavailableError,
)
from asyncjob.client.kubernetes import KubernetesOperations
from asyncjob.errors import InvalidError
from support.builders import stored
from support.fake_api import NAMESPACE, FakeApi

OPERATIONS = KubernetesOperations(
    NAMESPACE, lambda: datetime(2026, 1, 1, tzinfo=UTC), lambda: "id", patience=5.0
)


def world(phase: str = "Queued", spec: dict[str, Any] | None = None, **status: Any) -> FakeApi:
    """Return a server with one job, `j`."""
    api = FakeApi()
    api.put(stored("j", {"phase": phase, **status}, **(spec or {})))
    return api


def spec(api: FakeApi) -> Any:
    return api.job("j")["spec"]


@pytest.mark.parametrize("phase", ["Queued", "Running", "DeadLetter"])
def test_cancel_is_wished_once(phase: str) -> None:
    api = world(phase)
    assert run(OPERATIONS.cancel("j", cascade=False), api).cancelling
    run(OPERATIONS.cancel("j", cascade=False), api)
    assert len(api.writes) == 1
    run(OPERATIONS.cancel("j", cascade=True), api)
    assert spec(api)["cancelCascade"]


def test_a_succeeded_job_is_not_cancelled_even_if_it_ends_meanwhile() -> None:
    api = world("Running")

    def end() -> None:
        api.meanwhile = lambda: None
        api.set("j", phase="Succeeded")

    api.meanwhile = end
    with pytest.raises(NotCancellableError, match="job j"):
        run(OPERATIONS.cancel("j", cascade=False), api)
    assert "cancel" not in spec(api)


def test_a_cancelled_job_is_cancelled_without_a_word() -> None:
    api = world("Cancelled", {"cancel": True})
    assert run(OPERATIONS.cancel("j", cascade=False), api).phase == "Cancelled"
    assert api.writes == []


def test_a_redrive_whose_answer_is_lost_is_not_made_twice() -> None:
    api = world("DeadLetter", redrives=2)
    api.lose = 1

    def act() -> None:
        api.meanwhile = lambda: api.set("j", phase="Queued", redrives=3)

    api.meanwhile = act
    run(OPERATIONS.redrive("j"), api)
    assert spec(api)["redrive"] == 3


@pytest.mark.parametrize("wish", [OPERATIONS.redrive, OPERATIONS.dismiss])
def test_only_a_dead_letter_is_redriven_or_dismissed(wish: Callable[[str], Any]) -> None:
    with pytest.raises(NotADeadLetterError, match="job j is Queued"):
        run(wish("j"), world())


def test_a_dismissal_that_came_about_is_not_refused_when_it_is_repeated() -> None:
    api = world("DeadLetter")
    run(OPERATIONS.dismiss("j"), api)
    api.set("j", phase="Cancelled")
    assert run(OPERATIONS.dismiss("j"), api).phase == "Cancelled"


def test_a_rerun_waits_for_the_one_before() -> None:
    api = world("Succeeded", {"rerun": 1}, reruns=0)
    original, looks = api.do, iter(range(10))

    def do(step: Any) -> Any:
        if getattr(step, "method", "") == "GET" and next(looks) == 2:
            api.set("j", reruns=1)
        return original(step)

    api.do = do  # type: ignore[method-assign]  # a stand-in for one test
    assert run(OPERATIONS.rerun("j"), api).id == "j-r2"
    assert spec(api)["rerun"] == 2


def test_a_rerun_that_nobody_creates_is_not_piled_upon() -> None:
    api = world("Succeeded", {"rerun": 1}, reruns=0)
    with pytest.raises(UnavailableError, match="does the operator run"):
        run(OPERATIONS.rerun("j"), api)
    assert api.writes == []


def test_what_a_law_forbids_is_told_in_its_words() -> None:
    api = world("Running")

    def refuse() -> None:
        raise InvalidError("spec.priority cannot be changed while the job is Running.", status=422)

    api.meanwhile = refuse
    with pytest.raises(JobStateError, match="while the job is Running"):
        run(OPERATIONS.set_priority("j", 3), api)


def test_what_is_as_wished_is_not_written() -> None:
    api = world()
    run(OPERATIONS.set_suspended("j", suspended=False), api)
    run(OPERATIONS.set_priority("j", 0), api)
    assert api.writes == []
    assert run(OPERATIONS.set_suspended("j", suspended=True), api).suspended


def test_a_job_that_is_not_there_is_named() -> None:
    with pytest.raises(JobNotFoundError, match="no job other"):
        run(OPERATIONS.cancel("other", cascade=False), world())
