"""What `make up`, `make down` and `make status` do with the environment in the background.

There is one: it is started unless it runs, stopped, wiped, described.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from asyncjob_dev.binaries import default_resolver
from asyncjob_dev.environment.settings import (
    DEFAULT_APP,
    ROOT,
    EnvironmentPaths,
    EnvironmentSettings,
)
from asyncjob_dev.environment.state import (
    POLL_SECONDS,
    EnvironmentState,
    RunningPart,
    load_state,
    lock_holder,
    wait_unlocked,
)
from asyncjob_dev.errors import (
    EnvironmentInUseError,
    OtherSettingsError,
    StartFailedError,
    StopFailedError,
)
from asyncjob_dev.files import tail, translate_folder_errors
from asyncjob_dev.ports import reserve_port

STOP_SECONDS = 60.0
KILL_SECONDS = 10.0

GATEWAY_PORT = 8080
"""Taken unless somebody else has it, or is about to."""

_Popen = subprocess.Popen[str]


def start_background(
    layout: EnvironmentPaths, settings: EnvironmentSettings, on_step: Callable[[str], None]
) -> None:
    """Return when everything is ready; else raise, and leave nothing running."""
    default_resolver().resolve_all()
    layout.make()
    process = _spawn_daemon(layout, with_ports(layout, settings))
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


def with_ports(layout: EnvironmentPaths, settings: EnvironmentSettings) -> EnvironmentSettings:
    """Return the settings with the ports that were asked for, or those of the last run if free."""
    return replace(
        settings,
        api_port=_api_port(layout, settings),
        gateway_port=_gateway_port(layout, settings),
    )


def _api_port(layout: EnvironmentPaths, settings: EnvironmentSettings) -> int | None:
    """Stay where it was, if that can be: kubectl caches by address, people keep addresses."""
    before = load_state(layout.state)
    if settings.api_port or before is None or not reserve_port(before.port):
        return settings.api_port
    return before.port


def _gateway_port(layout: EnvironmentPaths, settings: EnvironmentSettings) -> int | None:
    """Stay where it was, if that can be; else where people look first."""
    before = load_state(layout.state)
    wanted = (before.gateway_port if before else 0, GATEWAY_PORT)
    had = (port for port in wanted if port and reserve_port(port))
    return settings.gateway_port or next(had, None)


def _spawn_daemon(layout: EnvironmentPaths, settings: EnvironmentSettings) -> _Popen:
    command = [sys.executable, "-m", "asyncjob_dev.environment.daemon"]
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

    `requested` are the settings that were chosen, by name of the field; what is up must have them.
    """
    while (pid := await_other(layout, on_step)) is None:
        try:
            start_background(layout, settings, on_step)
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


GUIDE = """
Use it:
  export KUBECONFIG={kubeconfig} PATH={bin}:{scripts}:$PATH
  {submit}
  kubectl get asyncjobs --watch
  curl {gateway}/api/v1/jobs
Logs: {logs}/  (tail -f {logs}/worker-1.log)
Stop: make down
"""


def status_table(layout: EnvironmentPaths, here: Path) -> str:
    """Return what runs, a line each; paths as seen from the folder `here`."""
    state = load_state(layout.state)
    if state is None or not state.parts:
        return "it is starting or stopping"
    lines = [f"{'WHAT':<26}{'PROCESS':<10}{'RESTARTS':<10}LOG"]
    lines += [
        _status_line(part, short_path(layout.logs / f"{part.name}.log", here))
        for part in state.parts
    ]
    lines.append(f"\nAPI server: https://127.0.0.1:{state.port}   handlers: {state.app}")
    gateway = f"http://127.0.0.1:{state.gateway_port}"
    lines.append(f"Gateway:    {gateway}   open to this machine only")
    lines.append(f"Dashboard:  {gateway}/dashboard/")
    return "\n".join(lines)


def usage_guide(layout: EnvironmentPaths, here: Path) -> str:
    """Return how to use it from the folder `here`."""
    state = load_state(layout.state)
    return GUIDE.format(
        kubeconfig=short_path(layout.kubeconfig, here, "$PWD/"),
        bin=short_path(layout.bin, here, "$PWD/"),
        scripts=short_path(Path(sys.executable).parent, here, "$PWD/"),
        logs=short_path(layout.logs, here),
        submit=_submission(state.app if state else DEFAULT_APP),
        gateway=f"http://127.0.0.1:{state.gateway_port if state else GATEWAY_PORT}",
    ).rstrip()


def _submission(app: str) -> str:
    """Return a command whose job the handlers know."""
    if app == DEFAULT_APP:
        return "kubectl apply -f examples/flaky-call.yaml"
    return "asyncjob submit TYPE key=value --wait"


def short_path(path: Path, here: Path, prefix: str = "") -> str:
    """Return the path as short as it can be typed; `prefix` makes a short one absolute again."""
    return f"{prefix}{path.relative_to(here)}" if path.is_relative_to(here) else str(path)


def _status_line(part: RunningPart, log: str) -> str:
    pid = "ended" if part.pid is None else str(part.pid)
    return f"{part.name:<26}{pid:<10}{part.restarts:<10}{log}"
