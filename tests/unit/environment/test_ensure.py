"""One environment, however many commands ask for it, and it is what they asked for."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from asyncjob_dev.environment import EnvironmentPaths, EnvironmentSettings, background
from asyncjob_dev.environment import background as background_module
from asyncjob_dev.environment.background import differences
from asyncjob_dev.environment.state import EnvironmentState, RunningPart, acquire_lock, save_state
from asyncjob_dev.errors import EnvironmentInUseError, OtherSettingsError, StartFailedError

US = os.getpid()
COMPLETE = EnvironmentState(
    20001, "a:b", [RunningPart("etcd", 7)], workers=2, slots=4, queues="a,b"
)
STARTING = EnvironmentState(20001, "a:b")


class Starts:
    """In the place of `background.start`: counts, and fails at first as often as it is told to."""

    def __init__(self, *errors: Exception) -> None:
        self.count = 0
        self._errors = list(errors)

    def __call__(
        self, _layout: EnvironmentPaths, _settings: EnvironmentSettings, _tell: object
    ) -> None:
        self.count += 1
        if self._errors:
            raise self._errors.pop(0)


@pytest.fixture
def layout(tmp_path: Path) -> EnvironmentPaths:
    layout = EnvironmentPaths(tmp_path)
    layout.make()
    return layout


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> Starts:
    starts = Starts()
    monkeypatch.setattr(background, "start_background", starts)
    return starts


def when_told(do: Callable[[], None]) -> Callable[[str], None]:
    """Return a listener that does this, a moment after it was told to wait."""
    return lambda _step: threading.Timer(0.1, do).start()


def test_what_nobody_runs_is_started(layout: EnvironmentPaths, starts: Starts) -> None:
    assert background_module.ensure_running(layout, EnvironmentSettings(), {}, print) is None
    assert starts.count == 1


def test_what_is_up_is_left_alone(layout: EnvironmentPaths, starts: Starts) -> None:
    save_state(layout.state, COMPLETE)
    with acquire_lock(layout.lock):
        assert background_module.ensure_running(layout, EnvironmentSettings(), {}, print) == US
    assert starts.count == 0


def test_a_start_by_another_command_is_waited_for(layout: EnvironmentPaths, starts: Starts) -> None:
    save_state(layout.state, STARTING)
    told = when_told(lambda: save_state(layout.state, COMPLETE))
    with acquire_lock(layout.lock):
        assert background_module.ensure_running(layout, EnvironmentSettings(), {}, told) == US
    assert starts.count == 0


def test_after_a_start_that_was_taken_back_it_is_started(
    layout: EnvironmentPaths, starts: Starts
) -> None:
    held = acquire_lock(layout.lock)
    assert (
        background_module.ensure_running(layout, EnvironmentSettings(), {}, when_told(held.close))
        is None
    )
    assert starts.count == 1


def test_whoever_loses_the_race_to_start_waits_for_the_winner(
    layout: EnvironmentPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = Starts(EnvironmentInUseError(layout.folder, 77))
    monkeypatch.setattr(background, "start_background", starts)
    assert background_module.ensure_running(layout, EnvironmentSettings(), {}, print) is None
    assert starts.count == 2


def test_waiting_has_an_end(
    layout: EnvironmentPaths, starts: Starts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_module, "START_SECONDS", 0.1)
    with (
        acquire_lock(layout.lock),
        pytest.raises(StartFailedError, match=f"{US} was neither.*make down"),
    ):
        background_module.ensure_running(layout, EnvironmentSettings(), {}, print)


def test_what_is_up_with_other_settings_is_not_what_was_asked_for(
    layout: EnvironmentPaths, starts: Starts
) -> None:
    save_state(layout.state, COMPLETE)
    words = r"not applied: APP is a:b, not c:d; PORT is 20001, not 1\. `make down` first"
    with acquire_lock(layout.lock), pytest.raises(OtherSettingsError, match=words):
        background_module.ensure_running(
            layout, EnvironmentSettings(), {"app": "c:d", "slots": 4, "api_port": 1}, print
        )
    assert starts.count == 0


def test_settings_that_run_already_are_no_difference() -> None:
    asked = {"app": "a:b", "workers": 2, "slots": 4, "api_port": 20001, "queues": "a,b"}
    assert differences(asked, COMPLETE) == []
    assert differences({"workers": 3}, COMPLETE) == ["WORKERS is 2, not 3"]
    assert differences({"queues": "a"}, COMPLETE) == ["QUEUES is a,b, not a"]
