"""`--reload`, for development: the worker as a child that is started anew when its code changes.

This process imports nothing of the app, so that a mistake in it ends the child only; the child has
said what is wrong, and the next change starts another.
"""

import logging
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Final

import structlog

from asyncjob.errors import ConfigError
from asyncjob.interrupts import restore_sigint
from asyncjob_worker.loading import app_folder
from asyncjob_worker.settings import Settings

log = structlog.get_logger()

RELOAD_GRACE_SECONDS: Final = 2.0
RELOAD_STOP_SECONDS: Final = 1.0
KILL_AFTER_SECONDS: Final = 5
"""Together with the time it takes to release jobs, the child ends by itself before that."""


def run_reloading(target: str, arguments: Sequence[str], settings: Settings) -> None:
    """Run the command with these arguments as a child, again and again, until SIGINT or SIGTERM.

    Raises ConfigError if the app's module is nowhere, or what watches files is not installed.
    """
    try:
        from watchfiles import PythonFilter, run_process
    except ImportError as error:
        raise ConfigError("--reload needs watchfiles: install asyncjob-worker[reload]") from error
    folder = app_folder(target)
    logging.getLogger("watchfiles").setLevel(logging.WARNING)  # changes are logged below
    log.info("watching for changes", folder=str(folder))
    os.environ.pop("ASYNCJOB_WORKER_RELOAD", None)
    restore_sigint()  # what watches files ends by a KeyboardInterrupt
    run_process(
        folder,
        target=shlex.join(child_command(arguments, settings)),
        target_type="command",
        watch_filter=PythonFilter(),
        callback=lambda changes: log.info("code changed", files=sorted({x for _, x in changes})),
        debounce=400,
        sigint_timeout=KILL_AFTER_SECONDS,
    )


def child_command(arguments: Sequence[str], settings: Settings) -> list[str]:
    """Return the command of the child: the same, without reloading and in a hurry at its end."""
    kept = [argument for argument in arguments if argument != "--reload"]
    grace = min(settings.grace, RELOAD_GRACE_SECONDS)
    stop_wait = min(settings.stop_wait, RELOAD_STOP_SECONDS)
    hurry = [f"--grace={grace:g}", f"--stop-wait={stop_wait:g}"]
    return [sys.executable, "-m", "asyncjob_worker", *kept, *hurry]
