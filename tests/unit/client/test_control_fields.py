"""Asking things of jobs that change meanwhile, and answers that are lost."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from asyncjob.client.errors import (
    JobNotFoundError,
    JobStateError,
    NotADeadLetterError,
    NotCancellableError,
    UnavailableError,
)
from asyncjob.client.kubernetes.client import AsyncKubernetesJobsClient
from asyncjob.errors import InvalidError
from support.in_memory.fake_api import FakeApi, client_of, run
from support.objects.builders import stored


def jobs(api: FakeApi) -> AsyncKubernetesJobsClient:
    return client_of(api, patience=5.0)


def fake_api(phase: str = "Queued", spec: dict[str, Any] | None = None, **status: Any) -> FakeApi:
    """Return a server with one job, `j`."""
    api = FakeApi()
    api.put(stored("j", {"phase": phase, **status}, **(spec or {})))
    return api


def spec(api: FakeApi) -> Any:
    return api.job("j")["spec"]


@pytest.mark.parametrize("phase", ["Queued", "Running", "DeadLetter"])
def test_cancel_is_requested_once(phase: str) -> None:
    api = fake_api(phase)
    assert run(jobs(api).cancel("j", cascade=False)).cancelling
    run(jobs(api).cancel("j", cascade=False))
    assert len(api.writes) == 1
    run(jobs(api).cancel("j", cascade=True))
    assert spec(api)["cancelCascade"]


def test_a_succeeded_job_is_not_cancelled_even_if_it_ends_meanwhile() -> None:
    api = fake_api("Running")

    def end() -> None:
        api.meanwhile = lambda: None
        api.set("j", phase="Succeeded")

    api.meanwhile = end
    with pytest.raises(NotCancellableError, match="job j"):
        run(jobs(api).cancel("j", cascade=False))
    assert "cancel" not in spec(api)


def test_a_cancelled_job_is_cancelled_without_a_word() -> None:
    api = fake_api("Cancelled", {"cancel": True})
    assert run(jobs(api).cancel("j", cascade=False)).phase == "Cancelled"
    assert api.writes == []


def test_a_redrive_whose_answer_is_lost_is_not_made_twice() -> None:
    api = fake_api("DeadLetter", redrives=2)
    api.lose = 1

    def act() -> None:
        api.meanwhile = lambda: api.set("j", phase="Queued", redrives=3)

    api.meanwhile = act
    run(jobs(api).redrive("j"))
    assert spec(api)["redrive"] == 3


@pytest.mark.parametrize(("seconds", "refused"), [(60, True), (61, False)])
def test_a_dead_letter_is_redriven_before_its_deadline_only(seconds: int, *, refused: bool) -> None:
    api = fake_api("DeadLetter", {"deadlineSeconds": seconds})
    client = client_of(api, now=datetime(2026, 1, 1, 0, 1, tzinfo=UTC))
    if not refused:
        run(client.redrive("j"))
        assert spec(api)["redrive"] == 1
        return
    with pytest.raises(JobStateError, match="job j is not redriven: its deadline passed at 2026-"):
        run(client.redrive("j"))
    report = run(client.redrive_many())
    assert [failure.id for failure in report.failed] == ["j"]
    assert "redrive" not in spec(api)
    run(client.dismiss("j"))


@pytest.mark.parametrize("client_is_ahead", [600, -600])
@pytest.mark.parametrize(("seconds", "refused"), [(60, True), (61, False)])
def test_a_deadline_is_a_time_of_the_api_servers_clock_and_not_of_the_clients(
    seconds: int, client_is_ahead: int, *, refused: bool
) -> None:
    api = fake_api("DeadLetter", {"deadlineSeconds": seconds})
    api.date = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
    client = client_of(api, now=api.date + timedelta(seconds=client_is_ahead))
    report = run(client.redrive_many(dry_run=True))
    assert (report.done, [one.id for one in report.failed]) == (
        ([], ["j"]) if refused else (["j"], [])
    )
    if refused:
        with pytest.raises(JobStateError, match="its deadline passed at"):
            run(client.redrive("j"))
    else:
        run(client.redrive("j"))
    assert spec(api).get("redrive", 0) == (0 if refused else 1)


@pytest.mark.parametrize("dry_run", [True, False])
def test_dead_letters_past_their_deadline_keep_no_place_from_those_behind_them(
    *, dry_run: bool
) -> None:
    api = FakeApi()
    for number in range(6):
        late = {"deadlineSeconds": 1} if number < 3 else {}
        letter = stored(f"j{number}", {"phase": "DeadLetter"}, **late)
        letter["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{number}Z"
        api.put(letter)
    client = client_of(api, now=datetime(2026, 1, 1, 1, tzinfo=UTC))
    report = run(client.redrive_many(limit=2, dry_run=dry_run))
    assert (report.matched, report.done) == (5, ["j3", "j4"]), "what is left is 1: j5"
    assert [one.id for one in report.failed] == ["j0", "j1"]
    assert "its deadline passed at 2026-" in report.failed[0].detail
    assert len(api.writes) == (0 if dry_run else 2)
    dismissed = run(client.dismiss_many(limit=2, dry_run=True))
    assert (dismissed.done, dismissed.failed) == (["j0", "j1"], [])


@pytest.mark.parametrize("control", ["redrive", "dismiss"])
def test_only_a_dead_letter_is_redriven_or_dismissed(control: str) -> None:
    with pytest.raises(NotADeadLetterError, match="job j is Queued"):
        run(getattr(jobs(fake_api()), control)("j"))


def test_a_dismissal_that_came_about_is_not_refused_when_it_is_repeated() -> None:
    api = fake_api("DeadLetter")
    run(jobs(api).dismiss("j"))
    api.set("j", phase="Cancelled")
    assert run(jobs(api).dismiss("j")).phase == "Cancelled"


def test_a_rerun_waits_for_the_one_before() -> None:
    api = fake_api("Succeeded", {"rerun": 1}, reruns=0)
    original, looks = api.do, iter(range(10))

    def do(step: Any) -> Any:
        if getattr(step, "method", "") == "GET" and next(looks) == 2:
            api.set("j", reruns=1)
        return original(step)

    api.do = do  # type: ignore[method-assign]  # a stand-in for one test
    assert run(jobs(api).rerun("j")).id == "j-r2"
    assert spec(api)["rerun"] == 2


def test_a_rerun_that_nobody_creates_is_not_piled_upon() -> None:
    api = fake_api("Succeeded", {"rerun": 1}, reruns=0)
    with pytest.raises(UnavailableError, match="does the operator run"):
        run(jobs(api).rerun("j"))
    assert api.writes == []


def test_what_a_rule_forbids_is_told_in_its_words() -> None:
    api = fake_api("Running")

    def refuse() -> None:
        raise InvalidError("spec.priority cannot be changed while the job is Running.", status=422)

    api.meanwhile = refuse
    with pytest.raises(JobStateError, match="while the job is Running"):
        run(jobs(api).set_priority("j", 3))


def test_what_is_as_requested_is_not_written() -> None:
    api = fake_api()
    run(jobs(api).set_suspended("j", suspended=False))
    run(jobs(api).set_priority("j", 0))
    assert api.writes == []
    assert run(jobs(api).set_suspended("j", suspended=True)).suspended


def test_a_job_that_is_not_there_is_named() -> None:
    with pytest.raises(JobNotFoundError, match="no job other"):
        run(jobs(fake_api()).cancel("other", cascade=False))
