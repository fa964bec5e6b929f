"""The background process of `make up`: owns everything that runs, until it is told to stop.

Started by `background`, which reads its standard output: a line of JSON for each step, and a last
one that says `ready`, `error` or `in_use_by`. If that reader goes away before, the start is taken
back. Should this process be killed, the kernel ends its children.
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

from asyncjob_dev.endings import unwound_by_signals
from asyncjob_dev.environment.environment import Environment
from asyncjob_dev.environment.errors import EnvironmentInUseError
from asyncjob_dev.environment.layout import Layout
from asyncjob_dev.environment.occupancy import occupy
from asyncjob_dev.environment.settings import Settings
from asyncjob_dev.environment.state import Part, State, load, save
from asyncjob_dev.errors import DevError

LOOK_SECONDS = 1.0
STDOUT, STDERR = 1, 2

HELD: list[TextIO] = []
"""Locks that are to outlast everything else here: whoever finds one free finds us gone."""

log = logging.getLogger(__name__)


def say(**message: str) -> None:
    """Tell the reader something; BrokenPipeError if it is gone."""
    os.write(STDOUT, f"{json.dumps(message)}\n".encode())


def fall_silent() -> None:
    """Let the reader go: what is printed from now on goes to the log."""
    os.dup2(STDERR, STDOUT)


def keep(environment: Environment) -> None:
    """Start again what must not stay down, and keep the state file true, for ever."""
    known: State | None = None
    while True:
        for process in environment.plane.processes:
            if not process.running:
                log.warning("%s ended with %s; starting it again", process.name, process.returncode)
                process.spawn()
        if (now := observe(environment)) != known:
            known = now
            save(environment.layout.state, now)
        time.sleep(LOOK_SECONDS)


def observe(environment: Environment) -> State:
    """Return what runs."""
    plane = environment.plane
    control = [Part(process.name, process.pid) for process in plane.processes]
    pods = [
        Part(pod.name, pod.process.pid if pod.process.running else None, pod.restarts)
        for pod in (*environment.services, *environment.workers)
    ]
    settings = environment.settings
    return State(
        port=int(plane.url.rsplit(":", 1)[1]),
        app=settings.app,
        parts=[*control, *pods],
        workers=settings.workers,
        slots=settings.slots,
        queues=settings.queues,
        gateway_port=settings.gateway_port or 0,
    )


def forget_parts(layout: Layout) -> None:
    """Take back what was told of parts, by an earlier process or this one; keep the port."""
    if (before := load(layout.state)) is not None:
        save(layout.state, replace(before, parts=[]))


def serve(layout: Layout, settings: Settings) -> None:
    """Bring the environment up, say so, and keep it until a signal comes."""
    layout.make()
    environment = Environment(layout, settings, lambda step: say(step=step))
    HELD.append(occupy(layout.lock))
    with unwound_by_signals(), suppress(KeyboardInterrupt):
        forget_parts(layout)
        run(layout, environment)


def run(layout: Layout, environment: Environment) -> None:
    """Do so until a signal unwinds the stack."""
    with environment:
        save(layout.state, observe(environment))
        say(ready=environment.plane.url)
        fall_silent()
        try:
            keep(environment)
        finally:
            forget_parts(layout)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("settings")
def main(folder: Path, settings: str) -> None:
    """Serve the environment of FOLDER with SETTINGS, which are JSON."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    try:
        serve(Layout(folder), Settings(**json.loads(settings)))
    except BrokenPipeError:
        log.warning("nobody waits for the start any more: stopped again")
        fall_silent()
    except EnvironmentInUseError as error:
        say(in_use_by=str(error.pid))
        sys.exit(1)
    except DevError as error:
        say(error=str(error))
        sys.exit(1)


if __name__ == "__main__":
    main()
