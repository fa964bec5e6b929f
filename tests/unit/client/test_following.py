"""Following a job: watches that break, servers that are away, jobs that vanish."""

from typing import Any

import pytest

from asyncjob.client.connection import Answer
from asyncjob.client.errors import JobGoneError, JobNotFoundError, WaitTimeoutError
from asyncjob.client.kubernetes.calls import ClusterUnavailableError
from asyncjob.rest.jobs import Job
from support.in_memory.fake_api import (
    FakeApi,
    Listen,
    Next,
    Obj,
    Pause,
    client_of,
    ended,
    iterate,
    run,
)
from support.objects.builders import stored


def fake_api(**status: Any) -> FakeApi:
    """Return a server with one job, `j`."""
    api = FakeApi()
    api.put(stored("j", status))
    return api


def seen(api: FakeApi, timeout: float | None = 100.0) -> list[Job]:
    """Follow the job and return what is handed out."""
    return list(iterate(client_of(api).follow("j", timeout, 5.0)))


def event(kind: str = "MODIFIED", **status: Any) -> Obj:
    """Return a watch's event about the job."""
    return {"type": kind, "object": stored("j", status)}


def on_listen(api: FakeApi, do: Any) -> None:
    """Have something done each time somebody begins to listen."""
    original = api.do

    def done(step: Any) -> Answer:
        if isinstance(step, Listen):
            do()
        return original(step)

    api.do = done  # type: ignore[method-assign]  # a stand-in for one test


def pauses_of(api: FakeApi) -> list[float]:
    """Return the list to which each pause of the client is added."""
    original, pauses = api.do, list[float]()

    def done(step: Any) -> Answer:
        if isinstance(step, Pause):
            pauses.append(step.seconds)
        return original(step)

    api.do = done  # type: ignore[method-assign]  # a stand-in for one test
    return pauses


def test_a_finished_job_is_handed_out_and_that_is_all() -> None:
    api = fake_api(phase="Succeeded")
    assert [job.phase for job in seen(api)] == ["Succeeded"]
    assert len(api.calls) == 1


def test_changes_are_handed_out_as_the_watch_tells_them_and_heartbeats_are_not() -> None:
    api = fake_api()
    api.events = [
        event(phase="Running"),
        event(phase="Running", lastUpdateTime="2026-01-01T00:00:03Z"),
        {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "7"}}},
        event(phase="Running", progress={"percent": 5}),
        event(phase="Succeeded"),
    ]
    found = seen(api)
    assert [(job.phase, job.progress and job.progress.percent) for job in found] == [
        ("Queued", None),
        ("Running", None),
        ("Running", 5),
        ("Succeeded", None),
    ]


def test_a_watch_that_ends_is_followed_by_a_look_and_another_watch() -> None:
    api = fake_api()
    rounds = iter(range(3))

    def end_in_time() -> None:
        if next(rounds) == 2:
            ended(api, "j")

    on_listen(api, end_in_time)
    assert [job.phase for job in seen(api)] == ["Queued", "Succeeded"]
    assert api.now < 2


def test_who_may_not_watch_looks_every_few_seconds() -> None:
    api = fake_api()
    api.listening = False
    original, looks = api.do, iter(range(100))

    def do(step: Any) -> Answer:
        if getattr(step, "method", "") == "GET" and step.path.endswith("/j") and next(looks) == 4:
            ended(api, "j")
        return original(step)

    api.do = do  # type: ignore[method-assign]  # a stand-in for one test
    assert [job.phase for job in seen(api)] == ["Queued", "Succeeded"]
    assert 15 <= api.now < 25


def test_a_server_that_is_away_is_waited_for() -> None:
    api = fake_api()

    def fall_over() -> None:
        api.refuse = 8
        ended(api, "j")

    on_listen(api, fall_over)
    assert [job.phase for job in seen(api)] == ["Queued", "Succeeded"]


def test_a_server_that_is_away_is_asked_ever_less_often_up_to_the_poll_interval() -> None:
    api = fake_api()
    api.refuse, pauses = 10_000, pauses_of(api)
    with pytest.raises(WaitTimeoutError):
        seen(api)
    assert pauses[:7] == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0])


def test_requests_are_repeated_ever_less_often_for_as_long_as_there_is_patience() -> None:
    api = fake_api()
    api.refuse, pauses = 10_000, pauses_of(api)
    with pytest.raises(ClusterUnavailableError):
        run(client_of(api, patience=20.0).get("j"))
    assert pauses == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0])
    assert api.now <= 20


def test_the_time_limit_counts_while_the_server_is_away() -> None:
    api = fake_api()
    api.refuse = 10_000
    with pytest.raises(WaitTimeoutError, match="could not be read") as caught:
        seen(api)
    assert caught.value.job is None
    assert 95 < api.now <= 105


def test_the_time_limit_ends_a_watch_that_tells_much_and_never_the_end() -> None:
    api = fake_api()
    original = api.do

    def do(step: Any) -> Answer:
        if isinstance(step, Next):
            api.now += 1
            return Answer(event(phase="Running", progress={"percent": int(api.now) % 90}))
        return original(step)

    api.do = do  # type: ignore[method-assign]  # a stand-in for one test
    with pytest.raises(WaitTimeoutError, match="it is Running"):
        seen(api)
    assert 99 <= api.now <= 102


def test_a_watch_that_tells_something_late_makes_no_wait_longer() -> None:
    api, silence = fake_api(), 0.0
    original = api.do

    def do(step: Any) -> Answer:
        nonlocal silence
        if isinstance(step, Listen):
            silence = step.max_silence
        if isinstance(step, Next):
            late = api.now < 8
            api.now += 10 if late else silence
            return Answer(event(metadata={}) if late else None)
        return original(step)

    api.do = do  # type: ignore[method-assign]  # a stand-in for one test
    with pytest.raises(WaitTimeoutError):
        seen(api, timeout=12.0)
    assert 12 <= api.now < 14


def test_a_job_that_never_was_is_not_found() -> None:
    with pytest.raises(JobNotFoundError) as caught:
        seen(FakeApi())
    assert not isinstance(caught.value, JobGoneError)


@pytest.mark.parametrize("told", [True, False])
def test_a_job_that_was_deleted_is_gone_whether_the_watch_tells_it_or_not(told: bool) -> None:
    api = fake_api()
    api.events = [event("DELETED")] if told else []
    on_listen(api, api.objects.clear)
    with pytest.raises(JobGoneError, match="deleted while"):
        seen(api)


def test_another_job_under_the_same_name_is_not_taken_for_it() -> None:
    api = fake_api()
    other = stored("j", {"phase": "Succeeded"})
    other["metadata"]["uid"] = "another"
    on_listen(api, lambda: api.put(other))
    with pytest.raises(JobGoneError, match="another has its name"):
        seen(api)
