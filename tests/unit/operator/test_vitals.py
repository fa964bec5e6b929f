"""What health and leadership follow from."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from asyncjob.errors import UnknownOutcomeError
from asyncjob.kube import KubeSession
from asyncjob_operator.core.vitals import Pulse, Vitals
from asyncjob_operator.handlers.operator import Operator
from asyncjob_operator.handlers.settings import Settings
from asyncjob_operator.handlers.supervise import supervise
from asyncjob_operator.kube.election import AlwaysElected
from asyncjob_operator.telemetry.metrics import Metrics

LIMIT = 900.0


class Clock:
    """Stands still until told."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def vitals(clock: Clock) -> Vitals:
    return Vitals(LIMIT, clock)


def test_a_loop_that_does_not_turn_is_stuck_after_its_limit(vitals: Vitals, clock: Clock) -> None:
    vitals.pulse("deadlines", 60.0)
    vitals.pulse("dispatch")
    clock.at += 60
    assert not vitals.stuck()
    clock.at += 1
    assert vitals.stuck() == "no turn of the loop 'deadlines' for 61 s"
    vitals.pulse("deadlines").beat()
    assert not vitals.stuck()


def test_waiting_for_what_need_not_come_is_not_being_stuck(vitals: Vitals, clock: Clock) -> None:
    pulse = vitals.pulse("dispatch")
    with pulse.idle():
        clock.at += 10 * LIMIT
        assert not vitals.stuck()
    assert not vitals.stuck()
    clock.at += LIMIT + 1
    assert vitals.stuck()


def test_a_watch_whose_requests_fail_turns_but_is_silent(vitals: Vitals, clock: Clock) -> None:
    pulse = vitals.pulse("watch of jobs")
    clock.at += LIMIT + 1
    pulse.turned()
    assert not vitals.stuck()
    assert vitals.silent(["watch of jobs"]) == "nothing of the watch of jobs for 901 s"
    pulse.moved()
    assert not vitals.silent(["watch of jobs"])


def test_one_silent_watch_of_two_is_not_all_of_them(vitals: Vitals, clock: Clock) -> None:
    one, other = vitals.pulse("one"), vitals.pulse("other")
    clock.at += LIMIT + 1
    other.beat()
    assert vitals.silent(["other", "one"])
    assert not vitals.all_silent(["other", "one"])
    clock.at += LIMIT + 1
    one.turned()
    assert vitals.all_silent(["other", "one"])


class NoPause:
    def pause(self) -> float:
        return 0.0

    def reset(self) -> None: ...


@pytest.mark.parametrize(
    ("error", "is_stuck"), [(UnknownOutcomeError("no answer"), False), (KeyError("bug"), True)]
)
async def test_a_loop_that_ends_by_itself_again_and_again_is_stuck_and_an_outage_is_not(
    vitals: Vitals, clock: Clock, error: Exception, is_stuck: bool
) -> None:
    long_enough = asyncio.Event()

    async def fail(_pulse: Pulse) -> None:
        clock.at += 100
        if clock.at > 1000 + 2 * LIMIT:
            long_enough.set()
        raise error

    pulse = vitals.pulse("loop")
    supervised = asyncio.create_task(supervise(pulse, fail, cast("Any", NoPause())))
    await long_enough.wait()
    supervised.cancel()
    assert bool(vitals.stuck()) is is_stuck


class Scene:
    """An operator of two namespaces that has not begun, and the clock of its vitals."""

    def __init__(self, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("asyncjob_operator.handlers.operator.monotonic", clock)
        settings = Settings(namespaces=("one", "two"), resync_interval=300.0)
        session = cast("KubeSession", SimpleNamespace(server_time=lambda: None))
        self.operator = Operator(settings, session, AlwaysElected(), Metrics())


@pytest.fixture
def scene(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(clock, monkeypatch)


def test_who_has_not_listed_all_jobs_is_neither_ready_nor_fit_but_alive(scene: Scene) -> None:
    operator = scene.operator
    assert operator.ready() == operator.unfit() == "jobs are not listed yet"
    assert operator.alive() == ""


def test_one_silent_namespace_makes_unready_and_all_of_them_unfit(
    scene: Scene, clock: Clock
) -> None:
    operator = scene.operator
    operator._synced = True
    for namespace in ("one", "two"):
        operator._watch_moved(namespace)
    operator._vitals.pulse("deadlines", 1e9)
    assert (operator.ready(), operator.unfit()) == ("", "")
    clock.at += LIMIT + 1
    operator._seen("two")
    for namespace in ("one", "two"):
        operator._vitals.pulse(f"watch of jobs in {namespace}").turned()
    operator._vitals.pulse("deadlines").beat()
    assert operator.ready() == "nothing of the watch of jobs in one for 901 s"
    assert (operator.unfit(), operator.alive()) == ("", "")
    clock.at += LIMIT + 1
    assert "watch of jobs in one" in operator.unfit()


def test_the_limit_follows_from_the_resync_interval_and_lets_bookmarks_and_pauses_be_late() -> None:
    assert Settings().silence_limit == LIMIT
    assert Settings(resync_interval=1).silence_limit == 180
    assert Settings(resync_interval=1, backoff_max=600).silence_limit == 1200
