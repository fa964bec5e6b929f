"""That an attempt goes on long beyond its time is noticed once the faults are over."""

from collections import Counter

import pytest

from asyncjob_simulation.apiserver.storage import Change
from asyncjob_simulation.time_limits import LONG, SOON_SECONDS, Object, TimeRules

LIMIT = 30


class Loop:
    now = 100.0

    def time(self) -> float:
        return self.now


class Watched:
    def __init__(self) -> None:
        self.loop, self.counts, self.broken = Loop(), Counter[str](), list[str]()
        self.rules = TimeRules(
            self.loop,
            lambda what: self.counts.update([what]),
            lambda promise, name, _: self.broken.append(f"{promise}: {name}"),
        )

    def take(self, phase: str, attempt: int = 1, **status: str) -> None:
        stored: Object = {
            "metadata": {"name": "job", "uid": "uid"},
            "spec": {"executionTimeoutSeconds": LIMIT},
            "status": {"phase": phase, "attempt": attempt, **status},
        }
        self.rules.on_job(Change(1, self.loop.now, ("ns", "job"), None, stored))

    def go_on(self, seconds: float) -> list[str]:
        self.loop.now += seconds
        self.rules.look()
        return self.broken


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_an_attempt_that_goes_on_is_noticed_after_its_time_and_not_before(watched: Watched) -> None:
    watched.rules.recover()
    watched.take("Running")
    watched.go_on(100)
    watched.take("Running")  # a heartbeat
    assert watched.go_on(LIMIT + SOON_SECONDS - 100) == []
    assert watched.go_on(1) == [f"{LONG}: job"]


def test_each_attempt_has_its_own_time(watched: Watched) -> None:
    watched.rules.recover()
    watched.take("Running")
    watched.go_on(100)
    watched.take("Running", attempt=2)
    assert watched.go_on(LIMIT + SOON_SECONDS) == []


def test_the_time_of_faults_does_not_count(watched: Watched) -> None:
    watched.take("Running")
    assert watched.go_on(1000) == []
    watched.rules.recover()
    assert watched.go_on(LIMIT + SOON_SECONDS) == []
    assert watched.go_on(1) == [f"{LONG}: job"]


def test_what_has_ended_goes_on_no_more_and_who_ended_it_is_counted(watched: Watched) -> None:
    watched.rules.recover()
    for message in ("it ran longer than 30 s", "it ran and its worker did not end it"):
        watched.take("Running")
        watched.take("Retrying", reason="ExecutionTimeout", message=message)
    assert watched.go_on(1000) == []
    assert watched.counts == {
        "ended at its time by its worker": 1,
        "ended at its time by an operator": 1,
    }
