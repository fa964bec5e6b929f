"""The background process of `make up`: owns everything that runs, until it is told to stop.

Started by `background`, which reads its standard output: a line of JSON for each step, and a last
one that says `ready`, `error` or `in_use_by`. If that reader goes away before, the start is undone.
Should this process be killed, the kernel ends its children.
"""

import json
import logging
import os
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import click

from asyncjob_dev.environment.environment import Environment
from asyncjob_dev.environment.settings import EnvironmentPaths, EnvironmentSettings
from asyncjob_dev.environment.state import (
    EnvironmentState,
    RunningPart,
    acquire_lock,
    load_state,
    save_state,
)
from asyncjob_dev.errors import DevError, EnvironmentInUseError
from asyncjob_dev.process import restart_ended
from asyncjob_dev.signals import unwind_on_signals

POLL_SECONDS = 1.0
STDOUT, STDERR = 1, 2

HELD_LOCKS: list[TextIO] = []
"""Locks that are to outlast everything else here: whoever finds one free finds us gone."""

log = logging.getLogger(__name__)


def send_message(**message: str) -> None:
    """Tell the reader something; BrokenPipeError if it is gone."""
    os.write(STDOUT, f"{json.dumps(message)}\n".encode())


def redirect_stdout_to_log() -> None:
    """Let the reader go: what is printed from now on goes to the log."""
    os.dup2(STDERR, STDOUT)


def supervise(environment: Environment) -> None:
    """Start again what must not stay down, and keep the state file true, for ever."""
    known: EnvironmentState | None = None
    while True:
        restart_ended(environment.plane.processes)
        if (now := current_state(environment)) != known:
            known = now
            save_state(environment.layout.state, now)
        time.sleep(POLL_SECONDS)


def current_state(environment: Environment) -> EnvironmentState:
    """Return what runs."""
    plane = environment.plane
    control = [RunningPart(process.name, process.pid) for process in plane.processes]
    pods = [
        RunningPart(pod.name, pod.process.pid if pod.process.running else None, pod.restarts)
        for pod in (*environment.services, *environment.workers)
    ]
    settings = environment.settings
    return EnvironmentState(
        port=int(plane.url.rsplit(":", 1)[1]),
        app=settings.app,
        parts=[*control, *pods],
        workers=settings.workers,
        slots=settings.slots,
        queues=settings.queues,
        gateway_port=settings.gateway_port or 0,
    )


def clear_parts(layout: EnvironmentPaths) -> None:
    """Take back what was told of parts, by an earlier process or this one; keep the port."""
    if (before := load_state(layout.state)) is not None:
        save_state(layout.state, replace(before, parts=[]))


def serve(layout: EnvironmentPaths, settings: EnvironmentSettings) -> None:
    """Bring the environment up, say so, and keep it until a signal comes."""
    layout.make()
    environment = Environment(layout, settings, lambda step: send_message(step=step))
    HELD_LOCKS.append(acquire_lock(layout.lock))
    with unwind_on_signals(), suppress(KeyboardInterrupt):
        clear_parts(layout)
        run(layout, environment)


def run(layout: EnvironmentPaths, environment: Environment) -> None:
    """Do so until a signal unwinds the stack."""
    with environment:
        save_state(layout.state, current_state(environment))
        send_message(ready=environment.plane.url)
        redirect_stdout_to_log()
        try:
            supervise(environment)
        finally:
            clear_parts(layout)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("settings")
def main(folder: Path, settings: str) -> None:
    """Serve the environment of FOLDER with SETTINGS, which are JSON."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # or each request is a line
    try:
        serve(EnvironmentPaths(folder), EnvironmentSettings(**json.loads(settings)))
    except BrokenPipeError:
        log.warning("nobody waits for the start any more: stopped again")
        redirect_stdout_to_log()
    except EnvironmentInUseError as error:
        send_message(in_use_by=str(error.pid))
        sys.exit(1)
    except DevError as error:
        send_message(error=str(error))
        sys.exit(1)


if __name__ == "__main__":
    main()
