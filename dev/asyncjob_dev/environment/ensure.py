"""Brings the environment up unless it is: another command's start or stop is waited for."""

import time
from collections.abc import Callable, Mapping

from asyncjob_dev.environment import background
from asyncjob_dev.environment.errors import (
    EnvironmentInUseError,
    OtherSettingsError,
    StartFailedError,
)
from asyncjob_dev.environment.layout import EnvironmentPaths
from asyncjob_dev.environment.occupancy import POLL_SECONDS, lock_holder
from asyncjob_dev.environment.settings import EnvironmentSettings
from asyncjob_dev.environment.state import EnvironmentState, load_state

START_SECONDS = 180.0
"""A start takes seconds, on a slow machine a minute."""

OnStep = Callable[[str], None]
RequestedSettings = Mapping[str, object]


def ensure_running(
    layout: EnvironmentPaths,
    settings: EnvironmentSettings,
    requested: RequestedSettings,
    on_step: OnStep,
) -> int | None:
    """Return when all is ready: None if it was started, else the process that had started it.

    `asked` are the settings that were chosen, by name of the field; what is up has to have them.
    """
    while (pid := await_other(layout, on_step)) is None:
        try:
            background.start_background(layout, settings, on_step)
        except EnvironmentInUseError:
            continue
        return None
    state = load_state(layout.state)
    if state and (found := differences(requested, state)):
        raise OtherSettingsError(pid, found)
    return pid


def await_other(layout: EnvironmentPaths, on_step: OnStep) -> int | None:
    """Return the process that keeps everything running; None once nobody holds the folder."""
    deadline = time.monotonic() + START_SECONDS
    told = False
    while (pid := lock_holder(layout.lock)) is not None and not _is_complete(layout):
        if not told:
            on_step(f"waiting for process {pid}, which is starting or stopping")
            told = True
        if time.monotonic() >= deadline:
            raise StartFailedError(
                f"process {pid} was neither ready nor gone within {START_SECONDS:g} s; look at "
                f"{layout.supervisor_log}, and `make down` stops it."
            )
        time.sleep(POLL_SECONDS)
    return pid


def differences(requested: RequestedSettings, state: EnvironmentState) -> list[str]:
    """Return a phrase for each setting that runs otherwise than asked for."""
    runs = {
        "app": state.app,
        "workers": state.workers,
        "slots": state.slots,
        "queues": state.queues,
        "api_port": state.port,
        "gateway_port": state.gateway_port,
    }
    return [
        f"{name.removeprefix('api_').upper()} is {runs[name]}, not {value}"
        for name, value in requested.items()
        if runs[name] != value
    ]


def _is_complete(layout: EnvironmentPaths) -> bool:
    state = load_state(layout.state)
    return state is not None and bool(state.parts)
