"""Finds the app that `module:app` names; every mistake is one clear line."""

import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType

from asyncjob.app import WorkerApp
from asyncjob.errors import AsyncJobError, ConfigError


def load_app(target: str) -> WorkerApp:
    """Import `module:attribute` (attribute `app` if left out), also from the current directory.

    Raises ConfigError that names what is missing or wrong.
    """
    module_name, _, attribute = target.partition(":")
    if not module_name or module_name.startswith("."):
        raise ConfigError(f"{target!r} names no module: give it as module:attribute")
    app = _attribute(_import(module_name), attribute or "app")
    if not isinstance(app, WorkerApp):
        raise ConfigError(f"{target} is a {type(app).__name__}, not a WorkerApp")
    if not app.handlers:
        raise ConfigError(f'{target} has no handlers: register one with @app.handler("type")')
    app.check()
    return app


def _import(module_name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module_name)
    except AsyncJobError:
        raise
    except ModuleNotFoundError as error:
        raise ConfigError(f"cannot import {module_name}: no module named {error.name!r}") from error
    except Exception as error:  # a module may raise anything as it is imported
        why = f"{type(error).__name__}: {error}"
        raise ConfigError(f"cannot import {module_name}: {why} ({_place(error)})") from error


def _place(error: Exception) -> str:
    """Return the file and line that the error came from."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename}:{last.lineno}"


def _attribute(module: ModuleType, attribute: str) -> object:
    if not hasattr(module, attribute):
        raise ConfigError(f"module {module.__name__} has no {attribute!r}")
    return getattr(module, attribute)
