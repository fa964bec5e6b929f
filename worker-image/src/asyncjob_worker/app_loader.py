"""Imports the app that `module:attribute` names, and reloads it during development.

Every error in the name or in the app is reported in one line. With `--reload` the worker runs as a
child process that is restarted when its code changes. The reloading process itself imports nothing
of the app, so that an error in the app ends only the child, and the next change starts another.
"""

import importlib
import importlib.util
import logging
import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

import structlog

from asyncjob.app import WorkerApp
from asyncjob.errors import AsyncJobError, ConfigError
from asyncjob.programs.interrupts import restore_sigint
from asyncjob_worker.errors import AppNotLoadedError
from asyncjob_worker.settings import Settings

log = structlog.get_logger()

RELOAD_GRACE_SECONDS: Final = 2.0
RELOAD_STOP_SECONDS: Final = 1.0
"""Grace period and stop wait of a worker that `--reload` restarts: somebody has changed the code
and waits for it; the jobs are released and run again."""

KILL_AFTER_SECONDS: Final = 5
"""A child that has not ended by then is killed. Longer than its grace period and stop wait
together, which leaves time to release its jobs."""


def load_app(target: str) -> WorkerApp:
    """Import `module:attribute` (by default the attribute `app`), also from the current directory.

    Raises AppNotLoadedError, which says what is missing or wrong.
    """
    module_name, attribute = _split_target(target)
    app = _get_attribute(_import_module(module_name), attribute)
    if not isinstance(app, WorkerApp):
        raise AppNotLoadedError(f"{target} is a {type(app).__name__}, not a WorkerApp")
    if not app.handlers:
        raise AppNotLoadedError(f'{target} has no handlers: register one with @app.handler("type")')
    app.check()
    return app


def app_folder(target: str) -> Path:
    """Return the folder of the app's top-level package or module, without importing it.

    Raises AppNotLoadedError if there is no such module.
    """
    _add_current_folder()
    name = _split_target(target)[0].partition(".")[0]
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise AppNotLoadedError(f"cannot import {name}: no module named {name!r}")
    locations = spec.submodule_search_locations
    return Path(next(iter(locations)) if locations else str(spec.origin)).resolve().parent / (
        name if locations else ""
    )


def _split_target(target: str) -> tuple[str, str]:
    module_name, _, attribute = target.partition(":")
    if not module_name or module_name.startswith("."):
        ways = "give it as module:attribute, or as module for its app"
        raise AppNotLoadedError(f"{target!r} names no module: {ways}")
    return module_name, attribute or "app"


def _add_current_folder() -> None:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)


def _import_module(module_name: str) -> ModuleType:
    _add_current_folder()
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        reason = f"no module named {error.name!r}"
        if not _is_parent(str(error.name), of=module_name):
            reason = f"{reason} ({_location(error)})"
        raise AppNotLoadedError(f"cannot import {module_name}: {reason}") from error
    except (Exception, SystemExit) as error:  # a module may raise anything as it is imported
        reason = f"{_describe_error(error)} ({_location(error)})"
        raise AppNotLoadedError(f"cannot import {module_name}: {reason}") from error


def _is_parent(name: str, *, of: str) -> bool:
    return f"{of}.".startswith(f"{name}.")


def _describe_error(error: BaseException) -> str:
    if isinstance(error, AsyncJobError):
        return _one_line(error)
    if isinstance(error, SystemExit):
        return f"it calls sys.exit({error.code!r})"
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}"
    return f"{type(error).__name__}: {_one_line(error)}"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _location(error: BaseException) -> str:
    """Return file and line of the module-level code that led to the error."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    modules = [frame for frame in frames if frame.name == "<module>"]
    last = (modules or frames)[-1]
    return f"{last.filename}:{last.lineno}"


def _get_attribute(module: ModuleType, attribute: str) -> object:
    if not hasattr(module, attribute):
        raise AppNotLoadedError(f"module {module.__name__} has no {attribute!r}")
    return getattr(module, attribute)


def run_reloading(target: str, arguments: Sequence[str], settings: Settings) -> None:
    """Run the command as a child, restarted at each change of the code, until SIGINT or SIGTERM.

    Raises ConfigError if the app's module is not found or watchfiles is not installed.
    """
    try:
        from watchfiles import PythonFilter, run_process
    except ImportError as error:
        raise ConfigError("--reload needs watchfiles: install asyncjob-worker[reload]") from error
    folder = app_folder(target)
    logging.getLogger("watchfiles").setLevel(logging.WARNING)  # changes are logged below
    log.info("watching for changes", folder=str(folder))
    os.environ.pop("ASYNCJOB_WORKER_RELOAD", None)
    restore_sigint()  # watchfiles ends by a KeyboardInterrupt
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
    """Return the child's command: the same arguments without --reload, with short stop times."""
    kept = [argument for argument in arguments if argument != "--reload"]
    grace = min(settings.grace, RELOAD_GRACE_SECONDS)
    stop_grace_seconds = min(settings.stop_grace_seconds, RELOAD_STOP_SECONDS)
    short_stop = [f"--grace={grace:g}", f"--stop-wait={stop_grace_seconds:g}"]
    return [sys.executable, "-m", "asyncjob_worker", *kept, *short_stop]
