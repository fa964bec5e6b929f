"""Starts, looks at and stops the one environment that `make up` keeps running."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace

from asyncjob_dev.binaries import default_resolver
from asyncjob_dev.environment.errors import (
    EnvironmentInUseError,
    StartFailedError,
    StopFailedError,
)
from asyncjob_dev.environment.layout import ROOT, EnvironmentPaths
from asyncjob_dev.environment.occupancy import lock_holder, wait_unlocked
from asyncjob_dev.environment.settings import EnvironmentSettings
from asyncjob_dev.environment.state import load_state
from asyncjob_dev.files import tail, translate_folder_errors
from asyncjob_dev.ports import is_free

STOP_SECONDS = 60.0
KILL_SECONDS = 10.0

GATEWAY_PORT = 8080
"""Taken unless somebody else has it."""

_Popen = subprocess.Popen[str]


def start_background(
    layout: EnvironmentPaths, settings: EnvironmentSettings, on_step: Callable[[str], None]
) -> None:
    """Return when everything is ready; else raise, and leave nothing running."""
    default_resolver().resolve_all()
    layout.make()
    ports = replace(
        settings,
        api_port=_api_port(layout, settings),
        gateway_port=_gateway_port(layout, settings),
    )
    process = _spawn_daemon(layout, ports)
    try:
        _follow_start(process, layout, on_step)
    except BaseException:
        _stop_daemon(process)
        raise


def stop_background(layout: EnvironmentPaths) -> bool:
    """Stop everything and wait; False when nothing was running."""
    pid = lock_holder(layout.lock)
    if pid is None:
        return False
    for number, patience in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, KILL_SECONDS)):
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        if wait_unlocked(layout.lock, patience):
            return True
    raise StopFailedError(f"process {pid} does not end; look at {layout.supervisor_log}")


def wipe(layout: EnvironmentPaths) -> None:
    """Forget all jobs: remove what the environment has written."""
    with translate_folder_errors(layout.folder):
        for path in layout.wiped:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def _api_port(layout: EnvironmentPaths, settings: EnvironmentSettings) -> int | None:
    """Stay where it was, if that can be: kubectl caches by address, people keep addresses."""
    before = load_state(layout.state)
    if settings.api_port or before is None or not is_free(before.port):
        return settings.api_port
    return before.port


def _gateway_port(layout: EnvironmentPaths, settings: EnvironmentSettings) -> int | None:
    """Stay where it was, if that can be; else where people look first."""
    before = load_state(layout.state)
    wanted = (before.gateway_port if before else 0, GATEWAY_PORT)
    free = (port for port in wanted if port and is_free(port))
    return settings.gateway_port or next(free, None)


def _spawn_daemon(layout: EnvironmentPaths, settings: EnvironmentSettings) -> _Popen:
    command = [sys.executable, "-m", "asyncjob_dev.environment.resident"]
    with layout.supervisor_log.open("ab") as log:
        return subprocess.Popen(
            [*command, str(layout.folder), json.dumps(asdict(settings))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=ROOT,
            start_new_session=True,
            text=True,
        )


def _follow_start(
    process: _Popen, layout: EnvironmentPaths, on_step: Callable[[str], None]
) -> None:
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            message = json.loads(line)
            if "ready" in message:
                return
            if "in_use_by" in message:
                raise EnvironmentInUseError(layout.folder, int(message["in_use_by"]))
            if "error" in message:
                raise StartFailedError(message["error"])
            on_step(message["step"])
    raise StartFailedError(
        f"the background process ended without a word.\nThe end of {layout.supervisor_log.name}:\n"
        + tail(layout.supervisor_log)
    )


def _stop_daemon(process: _Popen) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
